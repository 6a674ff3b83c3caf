"""A provider of internet and telephone: twelve kinds of request about contracts."""

from bench.replay.shops.shop import Kind, Shop

_CONTRACT = {"contract": "{ref}"}
_CREDIT = {**_CONTRACT, "euros": "{amount}"}
_MOVE = {**_CONTRACT, "new_address": "{address}"}
_CREDITS = (
    "{amount} euros on the last bill are wrong",
    "take the {amount} euros off the bill",
    "the bill has {amount} euros that I do not owe",
    "I will not pay those {amount} euros",
)

CONTRACTS = Shop(
    name="contracts",
    kinds=(
        Kind(
            "slow line",
            (
                "the line is very slow since Monday",
                "since the weekend it works, but slowly",
                "it takes minutes to load a page",
                "the speed is a tenth of what it was",
            ),
            (("test_line", _CONTRACT), ("reset_port", {**_CONTRACT, "profile": "fast"})),
            (("test_line", _CONTRACT), ("swap_router", {**_CONTRACT, "by": "post"})),
        ),
        Kind(
            "dead line",
            (
                "the line is dead since Monday",
                "since the weekend it does not work at all",
                "not one page loads",
                "there has been no light on the router since yesterday",
            ),
            (("test_line", _CONTRACT), ("send_technician", {**_CONTRACT, "slot": "morning"})),
            (("check_outage", _CONTRACT), ("send_technician", {**_CONTRACT, "slot": "next_free"})),
        ),
        Kind(
            "small credit",
            (*_CREDITS, "a small sum on the bill is wrong, {amount} euros"),
            (("credit_bill", {**_CREDIT, "approved": False}),),
            (("explain_bill", _CONTRACT), ("credit_bill", {**_CREDIT, "approved": False})),
            (3, 50),
        ),
        Kind(
            "large credit",
            (*_CREDITS, "a large sum on the bill is wrong, {amount} euros"),
            (("open_dispute", _CREDIT), ("credit_bill", {**_CREDIT, "approved": True})),
            (("open_dispute", _CREDIT), ("forward", {**_CONTRACT, "team": "billing"})),
            (51, 400),
        ),
        Kind(
            "no bill",
            (
                "the last bill has not come",
                "I have not got a bill for two months",
                "please send me the last bill again",
                "I do not find the bill",
            ),
            (("send_bill", {**_CONTRACT, "by": "email"}),),
            (("send_bill", {**_CONTRACT, "by": "post"}), ("enrol_portal", _CONTRACT)),
        ),
        Kind(
            "withdraw",
            (
                "I signed last week and want to leave",
                "I want to end it, it began four days ago",
                "please cancel, I have had it since Tuesday",
                "it is new and I do not want it",
            ),
            (("withdraw_contract", _CONTRACT), ("collect_router", {**_CONTRACT, "paid_by": "us"})),
            (("withdraw_contract", _CONTRACT), ("collect_router", {**_CONTRACT, "paid_by": "customer"})),
        ),
        Kind(
            "leave",
            (
                "I signed years ago and want to leave",
                "I want to end it, it began two years ago",
                "please cancel, I have had it for years",
                "it is old and I do not want it",
            ),
            (("check_term", _CONTRACT), ("terminate", {**_CONTRACT, "when": "end_of_term"})),
            (("offer_rebate", _CONTRACT), ("terminate", {**_CONTRACT, "when": "next_month"})),
        ),
        Kind(
            "move",
            (
                "I move to {address} in {month}",
                "from {month} on I live at {address} and take it with me",
                "my new home from {month} is {address}; move the line there",
            ),
            (("check_address", _MOVE), ("schedule_move", {**_MOVE, "month": "{month}"})),
            (
                ("check_address", _MOVE),
                ("schedule_move", {**_MOVE, "month": "{month}"}),
                ("swap_router", {**_CONTRACT, "by": "post"}),
            ),
        ),
        Kind(
            "post address",
            (
                "send the bills to {address} from {month} on, the line stays",
                "my letters go to {address} from {month} on, not the line",
                "from {month} my post is to go to {address}; I live where I lived",
            ),
            (("update_billing_address", _MOVE),),
            (("verify_customer", _CONTRACT), ("update_billing_address", _MOVE)),
        ),
        Kind(
            "lost card",
            (
                "I have lost the SIM card",
                "my phone with the SIM card was stolen",
                "the SIM card is gone, and so is the phone",
                "somebody has taken my phone with the card",
            ),
            (("block_sim", {**_CONTRACT, "reason": "lost"}), ("send_sim", {**_CONTRACT, "charge": True})),
            (("block_sim", {**_CONTRACT, "reason": "lost"}), ("issue_esim", _CONTRACT)),
        ),
        Kind(
            "broken card",
            (
                "the SIM card does not work in my phone",
                "my phone does not see the SIM card",
                "the SIM card is bent, the phone is fine",
                "my phone says that there is no card, but it is in there",
            ),
            (("send_sim", {**_CONTRACT, "charge": False}),),
            (("test_line", _CONTRACT), ("issue_esim", _CONTRACT)),
        ),
        Kind(
            "abroad",
            (
                "the phone does not work abroad",
                "I am abroad and my phone has no net",
                "since I crossed the border there is no line",
                "in {month} I go abroad and need the net there",
            ),
            (("enable_roaming", {**_CONTRACT, "zone": "world"}), ("set_limit", {**_CONTRACT, "level": "standard"})),
            (("sell_pass", {**_CONTRACT, "days": 7}), ("enable_roaming", {**_CONTRACT, "zone": "world"})),
        ),
    ),
    frames=(
        "Contract {ref} ({thing}): {clause}.",
        "I have the {thing} with you, contract {ref}; {clause}.",
        "{Clause}. The contract is {ref}, {thing}.",
        "About my {thing}, number {ref}: {clause}.",
    ),
    openings=("", "", "Hello. ", "{name} here. ", "Good evening! "),
    closings=(
        "",
        "",
        " Regards, {name}",
        " I pay on time each month.",
        " I wrote to you on Monday.",
        " Please call me.",
    ),
    things=("Home 50", "Home 100", "Mobile S", "Mobile L", "Fibre 250", "Family plan", "Student plan"),
    reference="C-{}",
)
