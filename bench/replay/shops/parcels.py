"""A web shop: sixteen kinds of request about parcels that went out, or should have."""

from bench.replay.shops.shop import Kind, Shop

_ORDER = {"order_id": "{ref}"}
_ADDRESS = {**_ORDER, "address": "{address}"}
_AMOUNT = {**_ORDER, "amount": "{amount}"}
_BY_SHOP, _BY_CUSTOMER = {**_ORDER, "paid_by": "shop"}, {**_ORDER, "paid_by": "customer"}
_REFUNDS = (
    "I want a refund of {amount} euros",
    "please pay the {amount} euros back",
    "I would like my {amount} euros back",
    "the {amount} euros should go back to my account",
)

PARCELS = Shop(
    name="parcels",
    kinds=(
        Kind(
            "refund",
            (*_REFUNDS, "refund the small sum of {amount} euros", "it is only {amount} euros: please pay them back"),
            (("refund_order", {**_AMOUNT, "method": "card"}),),
            (("refund_order", {**_AMOUNT, "method": "store_credit"}),),
            (8, 200),
        ),
        Kind(
            "large refund",
            (
                *_REFUNDS,
                "refund the large sum of {amount} euros",
                "it was expensive: please pay the {amount} euros back",
            ),
            (("request_approval", _AMOUNT), ("refund_order", {**_AMOUNT, "method": "card", "approved": True})),
            (("request_approval", _AMOUNT), ("open_ticket", {**_ORDER, "team": "finance"})),
            (201, 900),
        ),
        Kind(
            "damaged",
            (
                "it has arrived with a crack",
                "it arrived today and is broken",
                "when I opened it there was a dent in it",
                "it has arrived in two pieces",
            ),
            (("open_claim", {**_ORDER, "reason": "damaged"}), ("send_replacement", {**_ORDER, "express": True})),
            (("open_claim", {**_ORDER, "reason": "damaged"}), ("create_return_label", _BY_SHOP)),
        ),
        Kind(
            "late",
            (
                "it has still not arrived",
                "it should be here by now and is not",
                "it was to arrive a week ago",
                "it has been on its way for ten days",
            ),
            (("track_parcel", _ORDER), ("refund_shipping", _ORDER)),
            (("track_parcel", _ORDER), ("give_voucher", {**_ORDER, "percent": 10})),
        ),
        Kind(
            "lost",
            (
                "it is marked as arrived but it is not here",
                "the carrier says that it has arrived and I have nothing",
                "it says delivered and it is not here",
                "your page says that it is here and it is not",
            ),
            (
                ("track_parcel", _ORDER),
                ("open_claim", {**_ORDER, "reason": "lost"}),
                ("send_replacement", {**_ORDER, "express": False}),
            ),
            (("track_parcel", _ORDER), ("ask_carrier", {**_ORDER, "proof": "signature"})),
        ),
        Kind(
            "changed mind",
            (
                "it has arrived and I do not want it",
                "I do not need it after all",
                "it is fine but I do not want to keep it",
                "I have one already and do not want it any more",
            ),
            (("create_return_label", _BY_CUSTOMER), ("await_return", {**_ORDER, "then": "refund_to_card"})),
            (("create_return_label", _BY_CUSTOMER), ("await_return", {**_ORDER, "then": "store_credit"})),
        ),
        Kind(
            "gift",
            (
                "it was a gift and I do not want it",
                "I got it as a gift and do not need it",
                "it is fine, a gift, but I do not want to keep it",
                "I have one already, this was a gift",
            ),
            (("create_return_label", _BY_SHOP), ("await_return", {**_ORDER, "then": "store_credit"})),
            (("find_giver", _ORDER), ("create_return_label", _BY_SHOP), ("give_voucher", {**_ORDER, "percent": 100})),
        ),
        Kind(
            "wrong item",
            (
                "it has arrived in the wrong size",
                "it is not the one that I wanted: wrong colour",
                "you sent me another one",
                "it is fine but not the one that I bought",
            ),
            (("create_return_label", _BY_SHOP), ("send_replacement", {**_ORDER, "express": True})),
            (("create_return_label", _BY_SHOP), ("open_ticket", {**_ORDER, "team": "warehouse"})),
        ),
        Kind(
            "warranty",
            (
                "it has stopped working after five months",
                "it worked for seven months and does not any more",
                "it is broken after a few months",
                "it broke after eight months",
            ),
            (("check_warranty", _ORDER), ("send_to_repair", {**_ORDER, "paid_by": "shop"})),
            (("check_warranty", _ORDER), ("send_replacement", {**_ORDER, "express": False})),
        ),
        Kind(
            "out of warranty",
            (
                "it has stopped working after three years",
                "it worked for four years and does not any more",
                "it is broken after a few years",
                "it broke after five years",
            ),
            (("check_warranty", _ORDER), ("send_to_repair", {**_ORDER, "paid_by": "customer"})),
            (("check_warranty", _ORDER), ("give_voucher", {**_ORDER, "percent": 15})),
        ),
        Kind(
            "double charge",
            (
                "I was charged twice",
                "{amount} euros left my account two times",
                "there are two payments of {amount} euros",
                "I paid {amount} euros once and you took them twice",
            ),
            (("list_payments", _ORDER), ("reverse_payment", {**_ORDER, "which": "second"})),
            (("list_payments", _ORDER), ("open_ticket", {**_ORDER, "team": "finance"})),
        ),
        Kind(
            "price fell",
            (
                "it is {amount} euros cheaper now",
                "I paid {amount} euros more than it costs now",
                "it costs {amount} euros less today",
                "the price fell by {amount} euros after I paid",
            ),
            (("compare_price", _ORDER), ("refund_order", {**_AMOUNT, "method": "store_credit"})),
            (("compare_price", _ORDER), ("give_voucher", {**_ORDER, "percent": 10})),
            (8, 120),
        ),
        Kind(
            "end subscription",
            (
                "please stop the monthly delivery",
                "I do not want it every month any more",
                "please end the subscription",
                "no more of it each month",
            ),
            (("cancel_subscription", {**_ORDER, "when": "period_end"}),),
            (("offer_discount", {**_ORDER, "percent": 20}), ("cancel_subscription", {**_ORDER, "when": "now"})),
        ),
        Kind(
            "pause subscription",
            (
                "please stop the monthly delivery until {month}",
                "I do not want it every month before {month}",
                "please end the subscription and begin again in {month}",
                "no more of it each month until {month}",
            ),
            (("pause_subscription", {**_ORDER, "until": "{month}"}),),
            (
                ("cancel_subscription", {**_ORDER, "when": "period_end"}),
                ("schedule_subscription", {**_ORDER, "until": "{month}"}),
            ),
        ),
        Kind(
            "address, not sent",
            (
                "send it to {address} instead, it has not left yet",
                "it is not on its way yet and should go to {address}",
                "my address is {address} now, and it is not sent yet",
            ),
            (("update_address", _ADDRESS),),
            (("verify_customer", _ORDER), ("update_address", _ADDRESS)),
        ),
        Kind(
            "address, sent",
            (
                "send it to {address} instead, it has left already",
                "it is on its way and should go to {address}",
                "my address is {address} now, and it is sent already",
            ),
            (("track_parcel", _ORDER), ("redirect_parcel", _ADDRESS), ("notify_customer", {**_ORDER, "by": "email"})),
            (("recall_parcel", _ORDER), ("update_address", _ADDRESS), ("send_again", _ORDER)),
        ),
    ),
    frames=(
        "Order {ref}, the {thing}: {clause}.",
        "I write about the {thing} from order {ref}: {clause}.",
        "I bought the {thing} from you, order {ref}, and {clause}.",
        "{Clause}. It is about the {thing}, order {ref}.",
        "It is about my order {ref} with the {thing}; {clause}.",
    ),
    openings=("", "", "Hello. ", "Hi, this is {name}. ", "Good morning, {name} here. ", "Dear team! "),
    closings=(
        "",
        "",
        " Thanks, {name}",
        " Please help me today.",
        " I have been a customer for years.",
        " Can you see to it?",
        " It was to be a present for my sister.",
        " My neighbour has one that works.",
    ),
    things=(
        "kettle",
        "blue jacket",
        "desk lamp",
        "coffee grinder",
        "red bicycle",
        "office chair",
        "toaster",
        "headphones",
        "garden hose",
        "coffee beans",
        "cat food",
        "running shoes",
    ),
    reference="F{}",
)
