"""A fact ends when its user takes it back: it is closed, and what the user says in its place holds."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as upsert

from retrieval.pages.memories import holds
from retrieval.tables.memories import facts
from retrieval.tables.profiles import profiles
from tests.writer.conftest import AGENT, Bank
from writer.facts.extract import read
from writer.facts.store import Provenance, store_facts

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


async def holding(bank: Bank, user: str, *said: str) -> list[str]:
    """Returns the values that hold after a user said so, turn by turn."""
    async with bank.database.as_user(user, bank.author(user).authorised_at) as connection:
        words = await bank.keyring.find_or_make(connection, user)
        await connection.execute(upsert(profiles).values(user_sub=user, agent_key=AGENT))
        for hours, text in enumerate(said):
            at = NOON + timedelta(hours=hours)
            for draft in read(text, at.date()):
                await store_facts(connection, words, AGENT, [(draft, Provenance(AGENT, "test", "turn", at))])
        mine = facts.c.user_sub == user
        rows = await connection.execute(select(facts).where(mine, *holds()).order_by(facts.c.valid_from, facts.c.id))
        told = [words.open("fact", row.words, row.id) for row in rows]
    return [f"{each['attribute']} {each['value']}" for each in told]


@pytest.mark.parametrize(
    ("said", "held"),
    [
        (["I love coffee.", "I hate coffee."], ["hates coffee"]),
        (["I hate coffee.", "I love coffee now!"], ["loves coffee"]),
        (["I like coffee.", "I no longer like coffee."], []),
        (["I like coffee.", "I don't like coffee any more"], []),
        (["I like coffee.", "I don't like coffee"], ["dislikes coffee"]),
        (["I'm into bouldering.", "I'm not into bouldering anymore."], []),
        (["I hate coffee.", "I no longer like coffee."], ["hates coffee"]),
        (["I hate coffee.", "I no longer hate coffee."], []),
        (["I enjoy jazz.", "I stopped enjoying jazz."], []),
        (["I like coffee.", "I used to like coffee."], []),
        (["I like coffee and I like tea.", "I hate tea."], ["likes coffee", "hates tea"]),
        (["I'm vegetarian.", "I am not vegetarian."], []),
        (["I'm vegetarian.", "I'm not vegetarian any more."], []),
        (["I'm vegetarian.", "i'm no longer vegetarian"], []),
        (["I'm vegetarian.", "I'm not vegan."], ["diet vegetarian"]),
        (["I'm vegetarian.", "I'm vegan now."], ["diet vegan"]),
        (["I live in Berlin.", "I've moved to Lisbon."], ["home Lisbon"]),
        (["I live in Berlin.", "I have moved to Lisbon."], ["home Lisbon"]),
        (["I live in Berlin.", "I moved from Berlin to Lisbon."], ["home Lisbon"]),
        (["I live in Berlin.", "We just moved to lisbon"], ["home lisbon"]),
        (["I live in Berlin.", "I don't live in Berlin any more."], []),
        (["I live in Berlin.", "I don't live in Berlin anymore, I live in Lisbon now"], ["home Lisbon"]),
        (["I live in Berlin.", "I moved away from Berlin."], []),
        (["I live in New York.", "I don't live in York."], ["home New York"]),
        (["I live in York.", "I don't live in New York."], ["home York"]),
        (["I live in New York City.", "I no longer live in New York."], []),
        (["I live in York, England.", "I no longer live in York."], []),
        (["I live in Brooklyn, New York.", "I no longer live in New York."], []),
        (["I live in York.", "I no longer live in York, England."], []),
        (
            ["I live in Paris, Texas.", "I moved to Paris.", "I no longer live in Paris, Texas."],
            ["home Paris"],
        ),
        (["I live in Berlin.", "I left Berlin last month."], ["left Berlin last month"]),
        (["I work at Siemens.", "I left Siemens."], []),
        (["I work at Siemens AG.", "I quit Siemens"], []),
        (["I work at Siemens.", "I no longer work at Siemens."], []),
        (["I work at Siemens.", "I don't work for Siemens anymore"], []),
        (["I work at Siemens.", "I stopped working at Siemens"], []),
        (["I work at Siemens.", "I quit my job yesterday"], []),
        (["I work at Siemens.", "I left Bosch."], ["employer Siemens"]),
        (["I work at Siemens.", "I've got a new job at Bosch"], ["employer Bosch"]),
        (["I'm a teacher.", "I'm not a teacher any more."], []),
        (["My favorite team is Ajax.", "My new favorite team is PSV."], ["favourite team PSV"]),
        (["My favorite team is Ajax.", "My favorite team is PSV now."], ["favourite team PSV"]),
        (["My favorite team is Ajax.", "My favorite team isn't Ajax any more"], []),
        (["My favourite colour is teal.", "My favorite color is red."], ["favourite colour red"]),
        (["My favorite team is Ajax.", "My favorite team used to be Ajax."], []),
        (["I love jazz.", "I can't stand jazz anymore."], ["dislikes jazz"]),
        (["I live in Berlin.", "I moved to Oslo today."], ["home Oslo"]),
        (["I live in Berlin.", "I live in Oslo (Norway) now"], ["home Oslo"]),
        (["I live in Berlin.", "I LIVE IN OSLO"], ["home oslo"]),
        (["I play the cello.", "I stopped playing the cello."], []),
        (["I have a dog.", "I no longer have a dog."], []),
        (["I'm single.", "I'm engaged!"], ["marital status engaged"]),
        (["I want to learn Spanish.", "I no longer want to learn Spanish."], []),
        (["I want to learn Spanish.", "I gave up on learning Spanish."], []),
        (["My goal is to save 500 EUR a month.", "I no longer want to save 500 EUR a month."], []),
        (["My target weight is 70 kg", "My goal weight is 68 kg"], ["weight 68"]),
        (["I live in Berlin.", "I never said I live in Berlin."], ["home Berlin"]),
        (["I live in Berlin.", "Would you say I no longer live in Berlin?"], ["home Berlin"]),
        (["I love coffee.", "If I no longer loved coffee, I'd tell you."], ["loves coffee"]),
        (["I live in Berlin.", "since May I live in Porto"], ["home Porto"]),
        (["I live in Berlin.", "Just moved back to Nairobi!"], ["home Nairobi"]),
        (["I live in Berlin.", "my new home is Kraków"], ["home Kraków"]),
        (["I live in Berlin.", "now based in Seoul 🇰🇷"], ["home Seoul"]),
        (
            ["I live in Berlin.", "I left Berlin this morning on the 7:30 train"],
            ["home Berlin", "left Berlin this morning on the 7:30 train"],
        ),
        (["I work at Siemens.", "I quit"], []),
        (["I work at Siemens.", "i got fired yesterday"], ["got fired yesterday"]),
        (["I work at Siemens.", "I've been made redundant"], []),
        (["I work at Siemens.", "I'm unemployed now"], ["is unemployed"]),
        (["I work at Siemens.", "I quit the group chat"], ["employer Siemens"]),
        (["I work at Siemens.", "I quit, this bug is impossible."], ["employer Siemens"]),
        (["I work at Acme Cor.", "I left Acme Corp at 5 pm"], ["employer Acme Cor"]),
        (["I live in Berlin.", "We moved to Kubernetes last year."], ["home Berlin", "moved to Kubernetes last year"]),
        (["I live in Berlin.", "I moved to NYC"], ["home NYC"]),
        (["I work at Siemens.", "I was let go early today"], ["employer Siemens"]),
        (["I work at Siemens.", "I don't work at Siemens on Fridays"], ["employer Siemens"]),
        (["I'm a teacher.", "I'm not a teacher for kids but for adults"], ["role teacher"]),
        (["I'm a nurse.", "I used to be a nurse"], []),
        (["My boyfriend is named Tom.", "we broke up"], []),
        (["My girlfriend is called Mia.", "Mia and I broke up"], []),
        (["My boss is called Eva.", "My new boss is called Omar"], ["name Omar"]),
        (["I'm married.", "my wife and I split up"], []),
        (["I'm married.", "I got divorced"], ["marital status divorced"]),
        (["I'm single.", "I got married last month"], ["marital status married"]),
        (["I'm married.", "we split up the bill"], ["marital status married"]),
        (["I'm married.", "I left my wife a note."], ["marital status married"]),
        (["I'm married.", "I left my wife and kids at the airport."], ["marital status married"]),
        (["I'm married.", "I left my wife in the car"], ["marital status married"]),
        (["I'm married.", "My husband left me in charge of the shop."], ["marital status married"]),
        (["I'm married.", "My wife left me two voicemails"], ["marital status married"]),
        (["I'm married.", "I'm not married to the idea."], ["marital status married"]),
        (["I'm married.", "I left my wife and moved out."], []),
        (["I'm married.", "I left my husband in May."], []),
        (["I'm married.", "My wife left me a month ago"], []),
        (["My boyfriend is named Tom.", "We broke up in groups of three."], ["name Tom"]),
        (["I work at Siemens.", "I'm out of work on Friday."], ["employer Siemens"]),
        (["I work at Siemens.", "I lost my job in March"], ["lost my job in March"]),
        (["I work at Siemens.", "I lost my job two weeks ago"], ["lost my job two weeks ago"]),
        (["I speak French.", "I don't speak French at work."], ["speak French", "does not speak French at work"]),
        (["My boyfriend is named Tom.", "We split up in two teams."], ["name Tom"]),
        (["I have a car.", "sold my car"], []),
        (["I go to the gym every day.", "I stopped going to the gym"], []),
        (["I swim on Mondays.", "I swim on Fridays."], ["regularly swim on Mondays", "regularly swim on Fridays"]),
        (["I go to the gym twice a week.", "I don't go to the gym anymore."], []),
        (["I go to the gym every day.", "I go to the gym twice a week now"], ["regularly go to the gym twice a week"]),
        (["I go to the gym every day.", "I didn't go to the gym today"], ["regularly go to the gym every day"]),
        (
            ["I go to the gym every day.", "I swim every day"],
            [f"regularly {does} every day" for does in ("go to the gym", "swim")],
        ),
        (
            ["I like to go swimming with the kids.", "I'm off to go swimming with the kids."],
            ["likes go swimming with the kids"],
        ),
        (
            ["I work at Siemens.", "I lost my job at the engineering company."],
            [],
        ),
        (["I have a dog.", "I used to have a dog back in Michigan"], []),
        (["I work at Siemens.", "lost my job at Siemens"], []),
        (["I live in Lyon.", "moved out of Lyon"], []),
        (["I play chess.", "stopped playing chess"], []),
        (["I have a car.", "I sold my car radio"], ["has a car"]),
        (["I drive a Volvo.", "sold the volvo yesterday"], ["sold the volvo yesterday"]),
        (["I have a bike.", "someone stole my bike"], []),
        (["I have a dog.", "we had to put our dog down"], []),
        (["I'm vegan.", "no longer vegan"], []),
        (["I'm vegan.", "not vegan anymore"], []),
        (["I'm vegan.", "I eat meat again"], []),
        (["I'm vegan.", "I gave up being vegan"], []),
        (["I'm on a keto diet.", "I'm off keto"], []),
        (["I love coffee.", "I've gone off coffee"], []),
        (["I enjoy chess.", "I lost interest in chess"], []),
        (["I play the piano.", "I no longer play piano"], []),
        (["I play tennis.", "I gave up tennis"], []),
        (["I'm learning Dutch.", "I gave up Dutch"], []),
        (["I want to learn Spanish.", "I've given up on Spanish"], []),
        (["I use Windows.", "I switched from Windows to Linux"], []),
        (["My favorite color is blue.", "my favourite colour changed to green"], ["favourite colour green"]),
        (["I weigh 80 kg.", "I'm down to 76 kg"], ["weight 76"]),
        (["I'm allergic to peanuts.", "I outgrew my peanut allergy"], []),
        (["I take metformin for my diabetes.", "I stopped taking metformin"], []),
        (["I take metformin for my diabetes.", "I don't take sugar"], ["takes for diabetes metformin"]),
        (["I don't smoke.", "I started smoking again"], []),
        (["I don't eat meat.", "I eat meat again"], []),
        (["Ich wohne in Berlin.", "Seit Mai wohne ich in Porto"], ["home Porto"]),
        (["Ich arbeite bei Siemens.", "Ich habe bei Siemens gekündigt"], []),
        (["Vivo en Sevilla.", "Me mudé a Bilbao el mes pasado"], ["home Bilbao"]),
        (["J'habite à Lyon.", "J'ai quitté Renault"], ["home Lyon"]),
        (["I live in Berlin.", "Please answer this mail:\nI no longer live in Berlin."], ["home Berlin"]),
        (["I don't speak French.", "I speak French now."], ["speak French"]),
        (["I don't eat meat.", "I eat meat."], []),
        (["I don't drive.", "I drive a Tesla."], ["drive a Tesla"]),
        (["I don't drive.", "I don't drive to work."], ["does not drive ", "does not drive to work"]),
        (["I don't drink.", "I drink coffee."], ["does not drink "]),
        (["I'm a smoker.", "I quit smoking last year."], ["stopped smoking"]),
        (["I'm a smoker.", "I'm a non-smoker now."], ["is a non-smoker"]),
        (["I quit smoking.", "I started smoking again."], []),
        (["I don't smoke.", "I'm a smoker."], ["is a smoker"]),
        (["I'm unemployed.", "I work at Bosch."], ["employer Bosch"]),
        (["My wife lives in Rome.", "My wife lives in Paris."], ["home Paris"]),
        (["My wife is 34.", "My wife is 35."], ["age 35"]),
        (["My wife is vegan.", "My wife is pregnant."], ["is vegan", "is pregnant"]),
        (["My brother lives in Rome.", "My brother lives in Paris."], ["home Rome", "home Paris"]),
        (["Ich bin Vegetarier.", "Ich bin kein Vegetarier mehr."], []),
        (["My budget is 500 euros.", "My hotel budget is 90 euros."], ["budget 500", "hotel budget 90"]),
        (["My hotel budget is 90 euros.", "My hotel budget is 80 euros."], ["hotel budget 80"]),
        (["My budget is 500 euros.", "My new budget is 600 euros."], ["budget 600"]),
        (["I'm celiac.", "I'm vegetarian."], ["intolerance celiac", "diet vegetarian"]),
        (["I'm gluten-free.", "I'm on a keto diet"], ["intolerance gluten-free", "diet keto"]),
        (["I'm gluten-free.", "I'm no longer gluten-free."], []),
        (["Soy celíaca.", "Soy vegetariana."], ["intolerance celíaca", "diet vegetariana"]),
        (["I live in Rome.", "I moved to Bonn last year but now I live in Berlin."], ["home Berlin"]),
        (["I live in Berlin.", "I used to live in Berlin but now I live in Bonn."], ["home Bonn"]),
        (["I live in Berlin.", "Now I live in Bonn."], ["home Bonn"]),
        (["I live in Rome.", "I moved to Bonn in 2015 but moved back to Berlin."], ["home Berlin"]),
        (["I live in Berlin.", "We moved to Bonn when I was five."], ["home Berlin"]),
        (["I live in Berlin.", "I moved to Bonn as a child."], ["home Berlin"]),
        (["I live in Berlin.", "I'm living in Bonn for the summer."], ["home Berlin"]),
    ],
)
async def test_what_a_user_takes_back_holds_no_longer(bank: Bank, user: str, said: list[str], held: list[str]):
    assert await holding(bank, user, *said) == held


async def test_an_ending_of_a_fact_that_was_told_later_again_leaves_it(bank: Bank, user: str):
    assert await holding(bank, user, "I no longer like coffee.", "I like coffee.") == ["likes coffee"]
