"""Patterns of sentences that state an attribute of the user, such as name, home and employer."""

import re

from writer.facts.forms import CAPITAL, I_AM, NAME, PLACE, SMALL, SOON, START, STATED, WE_ARE, any_of

_JOBS = (
    r"(?:[\w-]+ ){0,2}(?:engineer|developer|programmer|teacher|nurse|doctor|lawyer|accountant|designer|architect|student"
    r"|scientist|researcher|manager|consultant|analyst|writer|artist|musician|photographer|chef|mechanic|electrician|plumber"
    r"|driver|pilot|carpenter|librarian|journalist|editor|therapist|counsell?or|psychologist|pharmacist|dentist|vet|farmer"
    r"|waiter|waitress|barista|baker|cashier|salesperson|salesman|entrepreneur|founder|freelancer|producer|dancer|coach"
    r"|trainer|welder|midwife|tailor|butcher|bartender|cleaner|courier|builder|roofer|painter|secretary|receptionist|realtor|broker|banker|auditor|economist|paramedic|caregiver|carer|hairdresser|barber|stylist|florist|physiotherapist|nutritionist|dietitian|judge|priest|imam|pastor|singer|actor|actress|novelist|filmmaker|sysadmin|tester|technician|machinist|surveyor|sailor|flight attendant|tour guide|security guard|stay-at-home (?:mom|mum|dad|parent)|housewife|homemaker|shop assistant|firefighter|police officer|soldier|veteran|professor|tutor|intern|paralegal|recruiter|gamer|streamer|dev|illustrator|planner|translator|nanny|surgeon|bookkeeper|physicist|chemist|biologist|statistician|admin|gardener)"
)
_NEXT = "and|but|so|because|since|as|with|when|while|which|where|who|after|before|for|now|these days|today|yesterday"
_STOP = rf"(?=$|[.,;!)]|\s+(?:{_NEXT})\b)"
_SMALL_PLACE = (
    r"(?!(?:the|an?|my|our|his|her|their|this|that|fear|hope|peace|harmony|poverty|hell|town|constant|total|denial|pain|here|there"
    r"|management|sales|marketing|hr|tears|another|different|new (?:house|flat|place|apartment|home)|linux|windows|mac|macos|python|rust|remote|work|bed"
    r"|dorms?|luxury|style|one|two|it|love|debt|exile)\b)(?![A-Z])" + SMALL + r"[^\W\d_A-Z'-]+(?: [^\W\d_A-Z'-]+){0,2}?"
)
_PLACE_STOP = rf"(?=$|[.,;!)]|\s+\(|\s+(?:{_NEXT}|last|this|in|on|a|about|two|over|near)\b)"
_TOWN = rf"(?P<value>{PLACE}|{_SMALL_PLACE}){_PLACE_STOP}"
_WORKPLACE = (
    r"(?!(?:home|night|nights|the moment|a (?:living|while|time|bit|few|lot|long|different|new)|all|work|free|me|my|myself|you|him|her|them|us|it|this|that|these|those|least"
    r"|various|some|many|an? hour|weekends?|once|best|different|the (?:same|best|time|weekend|first)|what\w*|\d)\b)(?:(?:the|an?) )?[\w&.'\u2024-]+(?: (?!(?:as|in|on|near|from|since|now|right)\b)[\w&.'\u2024-]+){0,4}?"
)
_HEAD = r"(?:head|director|vice president|vp|president|chair|dean|captain) of [\w&-]+(?: (?!(?:at|in|of|for)\b)[\w&-]+){0,2}|C[EFIOPT]O|an? (?:team|tech|engineering|project|product) lead"
_OWN_THING = r"team|club|phone|laptop|car|computer|bike|camera|browser|editor|operating system|os|gym|bank|airline|employer|instrument|(?:job )?title"
_OWN_TRAIT = (
    r"hobby|hobbies|major|nationality|religion|blood type|star sign|zodiac sign|native language|mother tongue|first language"
    r"|(?:main |primary )?(?:programming )?language|pronouns|(?:first|middle|last) name|surname|nickname|(?:eye|hair) colou?r|(?:wedding )?anniversary"
)
_PHRASE = r"[\w/+#&'-]+(?: [\w/+#&'-]+){0,4}?"
_NO_NAME = (
    r"(?!(?:[A-Z]\w*(?:an|ese|ish|ic)|French|Dutch|Greek|Swiss|Czech|Thai|Welsh|Arab|Hindu|Muslim|Sikh|Jewish|Iraqi|Israeli|Pakistani|Saudi|Sorry|Done"
    r"|Ready|Back|Here|Fine|Good|Sure|New|Not|Ok|Okay|Also|So|Very|Really|Just|Still|Currently|Always|Trying|Looking|In|On|At|From|The|A|An)\b)"
)
_GREETED = r"^(?:(?i:hi|hey|hiya|hello|good morning|good evening)(?: (?:there|all|everyone|team))?[,.!]*\s+)"
_FORMS = {
    "name": (
        rf"{START}[Mm]y name(?:'s| is) (?P<value>{NAME}){_STOP}",
        rf"{START}[Mm]y name(?:'s| is) (?P<value>(?!(?:not|on|in|the|an?|my|hard|too|very|also|misspelled|spelled|wrong|missing|gone|common|weird|long|short)\b)[a-z]{SMALL}+(?: (?!(?:and|but|is|on|in|from|now|here|too)\b){SMALL}{{3,}})?)(?=$|[.,;!]| (?:and|but)\b)",
        rf"{START}(?:I{SOON} go by|I'm (?:called|named)|(?i:(?:(?:you|u) can |please |just |pls |everyone |everybody |people |(?:my )?friends |they )*calls?(?: all)? me)) (?P<value>(?:(?:Mr|Mrs|Ms|Dr|Prof)\u2024? )?{NAME}|(?!(?:tomorrow|today|back|when|if|later|on|at|an?|the|crazy|tonight|now|old|maybe|whatever|by|in|for|asap|out)\b)[a-z]+(?=$| from now| instead))(?=$|[.,;!)]| (?:and|but|from|instead|because|please|pls)\b)",
        rf"{_GREETED}(?P<value>{CAPITAL}?{SMALL}{{2,15}}) here(?=$|[.,!]| from\b)",
        rf"{_GREETED}I'm (?P<value>{CAPITAL}[\w'-]+(?: {CAPITAL}[\w'-]+)?)(?=$|[.,!]| (?:and|from|btw)\b)",
        rf"^I'm {_NO_NAME}(?P<value>{CAPITAL}(?:{SMALL}|['-]){{2,}}(?: {CAPITAL}(?:{SMALL}|['-])+)?)(?=$|[.,!]| (?:and|from)\b)",
    ),
    "home": (
        rf"{START}(?:I|[Ww]e)(?:'ve)?{SOON}{SOON} (?:live in|reside in|(?:moved|relocated)(?: over| back| here)?(?: from {NAME})? to) {_TOWN}",
        rf"{WE_ARE}{SOON} (?:based out of|(?:based|living|(?:renting|sharing)(?: an?(?: [\w-]+){{1,2}})?) in) {_TOWN}",
        rf"{START}(?:I|[Ww]e)(?:'ve| have)?{SOON} been living in {_TOWN}",
        rf"{START}[Mm]y (?:new |current )?(?:home|place|address|house|flat|apartment) is in {_TOWN}",
        rf"{START}[Mm]y (?:new |current )?(?:home|city|town) is(?: now)? (?P<value>{PLACE}){_STOP}",
    ),
    "origin": (
        rf"{I_AM}(?: originally)? from (?P<value>{PLACE})(?: originally)?{_STOP}",
        rf"{START}I{SOON} (?:come from|grew up in) (?P<value>{PLACE}){_STOP}",
        rf"{START}(?:I'm|I was) born (?:and (?:raised|bred) )?in {_TOWN}",
        rf"{START}[Mm]y home ?town is {_TOWN}",
    ),
    "address": (
        rf"{START}[Mm]y (?:new |home |current )*address is (?P<value>(?!in )[\w .,'-]{{6,80}}?)(?=$|[.!;])",
        rf"{START}I{SOON} live at (?P<value>\d[\w .,'-]{{5,80}}?)(?=$|[.!;])",
    ),
    "born in": (rf"{START}(?:I was|I'm) born in (?P<value>(?:19|20)\d\d){_STOP}",),
    "employer": (
        rf"{START}I{SOON} work (?:at|for|@(?= [A-Z])) (?P<value>{_WORKPLACE}){_PLACE_STOP}",
        rf"{I_AM}{SOON} (?:working (?:at|for)|employed (?:at|by)) (?P<value>{_WORKPLACE}){_PLACE_STOP}",
        rf"{START}I(?:'ve)?{SOON} (?:started(?: working| (?:a|my) new (?:job|role|position))?|got (?:a|my) (?:new )?(?:job|role|position)) (?:at|with) (?P<value>{NAME}){_PLACE_STOP}",
    ),
    "role": (
        rf"{START}I(?:{SOON} (?:work|freelance)|'m{SOON} (?:working|freelancing)) as an? (?P<value>[\w -]{{3,40}}?){_PLACE_STOP}",
        rf"{I_AM}{SOON} (?:the )?(?P<value>{_HEAD}){_PLACE_STOP}",
        rf"(?i){I_AM}{SOON} an? (?P<value>{_JOBS})\b(?! (?:of|fan|at heart))",
        rf"{START}[Mm]y (?:job|profession|occupation) is (?P<value>(?!(?:not|very|so|too|hard|boring|great|fun|to|really)\b)[\w -]{{3,40}}?){_STOP}",
    ),
    "age": (
        rf"{I_AM} (?P<value>\d{{1,3}})(?: years old| y/?o)?(?=$|[.,!;]| and\b)",
        rf"{I_AM} an? (?P<value>\d{{1,3}})[ -]years?[ -]old(?=$|[.,;!]| (?:and|but|from|who|with|in|man|woman|guy|girl|male|female|student|nurse|teacher|mom|mum|dad|mother|father|engineer|developer)\b)",
        rf"{START}I(?: just)? turned (?P<value>\d{{1,3}})(?=$|[.,!;]| (?:and|yesterday|today|last|this|in|on)\b)",
    ),
    "diet": (
        rf"{I_AM}{SOON} (?:an? )?(?P<value>vegan|vegetarian|pescatarian|gluten[- ]free|(?:lactose|gluten|fructose|histamine)[- ]intolerant|celiac|coeliac|halal|kosher|keto)\b",
        rf"{I_AM}{SOON} on an? (?:strict )?(?P<value>[\w-]+(?: [\w-]+)?) diet\b",
        rf"{START}I(?:{SOON}| only) (?:keep|eat|follow) (?P<value>kosher|halal|vegan|vegetarian|gluten-free)(?=$|[.,;!]| (?:food|meat|meals|at|and|but|because|since)\b)",
        rf"{START}[Mm]y diet is (?P<value>[\w -]{{3,30}}?){_STOP}",
    ),
    "allergy": (
        rf"{I_AM}{SOON} allergic to (?P<value>[\w ,&'-]{{3,60}}?)(?: here)?(?=$|[.;!]|,? (?:but|so|because|since)\b)",
        rf"{START}[Mm]y allerg(?:y is|ies are|ies is) (?P<value>[\w ,'-]{{3,60}}?)(?=$|[.;!])",
    ),
    "birthday": (
        rf"{START}[Mm]y birthday(?:'s| is) (?:on )?(?P<value>(?!(?:coming|next|soon|this|in)\b)[\w ,]{{3,30}}?|\d{{1,2}}[./]\d{{1,2}}(?:[./]\d{{2,4}})?){_STOP}",
    ),
    "health": (
        rf"(?i){START}I(?:{SOON} (?:have|got)|'ve{SOON} got|{SOON} suffer from|'m living with) (?P<value>an? (?:bad|weak|sore|torn|injured) (?:knee|back|hip|shoulder|ankle|wrist|heart)|(?:[\w-]+ ){{0,2}}(?:disease|syndrome|disorder|intolerance|allergy|allergies)|type [12] diabetes|diabetes|asthma|adhd|migraines|arthritis|epilepsy|psoriasis|eczema|high blood pressure|autism)\b",
    ),
    "marital status": (
        rf"{WE_ARE}{SOON} (?P<value>single|married|divorced|engaged|widowed)(?=$|[.,;!]| (?:to|and|now)\b)",
        rf"{START}(?:I|[Ww]e)(?:'ve)?{SOON} (?:got|gotten) (?P<value>married|divorced|engaged)(?=$|[.,;!]| (?:to|and|last|this|in|on|yesterday)\b)",
    ),
    "is": (
        rf"{I_AM}{SOON} (?P<value>(?:left|right)[ -]handed|retired|pregnant|(?:deaf|blind)(?: in one (?:ear|eye))?|colou?r-?blind|an? (?:night owl|early bird|morning person|(?:non-?)?smoker|introvert|extrovert|beginner|homebody|single (?:mom|mum|dad|mother|father|parent)|native [A-Z][a-z]+ speaker)|self[ -]employed|unemployed|diabetic|dyslexic|autistic)(?=$|[.,;!]| (?:and|now)\b)",
    ),
    "time zone": (
        rf"{I_AM}{SOON} (?:in|on) (?:the )?(?P<value>[A-Z][\w/+-]*)(?: standard)? time(?: ?zone)?(?=$|[.,;!])",
        rf"{START}[Mm]y time ?zone is (?P<value>[\w+:/-]+(?: [\w+:/-]+)?){_STOP}",
    ),
    "pronouns": (rf"{START}I(?:{SOON} use|{SOON} go by) (?P<value>(?:he|she|they)/(?:him|her|them)(?:/\w+)?)\b",),
    "height": (
        rf"{I_AM}{SOON} (?P<value>[4-7]'\d{{1,2}}\"?|\d (?:feet|ft)(?: \d{{1,2}}(?: inches)?)?|1[.,]\d\d ?m|1\d\d ?cm)(?: tall)?(?=$|[.,;!\"]| (?:and|but|so)\b)",
    ),
    "system": (
        rf"(?i){START}(?:I'm on|I{SOON} use|I{SOON} run) (?P<value>(?:an? )?(?:(?:Mac|MacBook|iPhone|iPad|Android|Windows|Ubuntu|Debian|Fedora|Linux|macOS|Chromebook|PC)\b(?: [\w.]+){{0,2}}?))(?=$|[.,;!]| (?:and|but|with|for|at|in)\b)",
    ),
}
ABOUT_ME = [(attribute, re.compile(form)) for attribute, forms in _FORMS.items() for form in forms]
"""Attributes of the user with the patterns of sentences that state them; the group ``value`` is the value."""
SEVERAL = frozenset({"allergy", "health", "is", "system"})
"""Attributes of the user that may have several values at a time."""
MINE = re.compile(
    rf"{START}(?:[Mm]y|[Oo]ur) (?:new |current )?(?:(?P<thing>{_OWN_THING})(?:'s| is)(?: now)? (?P<which>(?=[A-Z\d]|an? (?!mess|disaster|piece|wreck|nightmare|joke|bit|lot|total|problem|pain|little)){_PHRASE})"
    rf"|(?P<trait>{_OWN_TRAIT})(?:'s| is| are)(?: now)? (?P<what>(?!(?:not|very|so|too|being|wrong|right|fine|good|bad|here|there|in|on|at|with|from|about|like|missing|misspelled|spelled)\b){_PHRASE}))"
    r"(?: now)?(?=$|[.,;!)]|\s+(?:and|but|so|because|since|which|while)\b)"
)
"""Sentences about a thing or a trait of the user ("my laptop is …"); their groups are the attribute and its value."""
STATES = any_of((*STATED, *(form for _, form in ABOUT_ME), MINE))
"""Pattern of all sentences that state what the user is, does, has or likes; the names of the user's people apart."""
