"""A hotel: ten kinds of request about bookings."""

from bench.replay.shops.shop import Kind, Shop

_BOOKING = {"booking": "{ref}"}

BOOKINGS = Shop(
    name="bookings",
    kinds=(
        Kind(
            "cancel early",
            (
                "I cannot come and cancel, it is two months away",
                "please cancel it, it is for {month}",
                "I cancel in good time, we do not travel in {month}",
            ),
            (("cancel_booking", {**_BOOKING, "fee": "none"}), ("refund_deposit", {**_BOOKING, "share": "all"})),
            (("cancel_booking", {**_BOOKING, "fee": "none"}), ("issue_credit", {**_BOOKING, "share": "all"})),
        ),
        Kind(
            "cancel late",
            (
                "I cannot come and cancel, it is for tomorrow",
                "please cancel it, it is for tonight",
                "I know it is late, we do not travel today",
            ),
            (("cancel_booking", {**_BOOKING, "fee": "one_night"}),),
            (("cancel_booking", {**_BOOKING, "fee": "full"}),),
        ),
        Kind(
            "another month",
            (
                "I cannot come then, but in {month}",
                "please move it to {month}",
                "we do not travel then and come in {month} instead",
            ),
            (("check_rooms", {**_BOOKING, "month": "{month}"}), ("move_booking", {**_BOOKING, "month": "{month}"})),
            (("cancel_booking", {**_BOOKING, "fee": "none"}), ("book_again", {**_BOOKING, "month": "{month}"})),
        ),
        Kind(
            "child's bed",
            (
                "our baby comes with us and needs a bed",
                "we need a bed for our little one",
                "please put a bed for a baby into the room",
            ),
            (("add_item", {**_BOOKING, "item": "cot", "charge": False}),),
            (("add_item", {**_BOOKING, "item": "cot", "charge": True}),),
        ),
        Kind(
            "extra bed",
            (
                "a friend comes with us and needs a bed",
                "we need a bed for our grown son",
                "please put a third bed into the room",
            ),
            (("check_rooms", {**_BOOKING}), ("add_item", {**_BOOKING, "item": "bed", "charge": True})),
            (("upgrade_room", {**_BOOKING, "to": "family"}),),
        ),
        Kind(
            "arrive late",
            (
                "we come after midnight",
                "our train is in very late, long after ten",
                "we will not be there before one in the night",
            ),
            (("note_arrival", {**_BOOKING, "late": True}), ("send_code", {**_BOOKING, "door": "night"})),
            (("note_arrival", {**_BOOKING, "late": True}), ("charge_guarantee", _BOOKING)),
        ),
        Kind(
            "arrive early",
            (
                "we come in the morning",
                "our train is in very early, long before ten",
                "we will be there at seven, not at three",
            ),
            (("note_arrival", {**_BOOKING, "late": False}), ("offer_luggage_room", _BOOKING)),
            (("add_item", {**_BOOKING, "item": "early_check_in", "charge": True}),),
        ),
        Kind(
            "bill to firm",
            (
                "the bill of {amount} euros must name my firm",
                "please write the bill to my company, {address}",
                "my firm pays the {amount} euros and needs its name there",
            ),
            (("reissue_bill", {**_BOOKING, "to": "company"}),),
            (("check_tax_number", _BOOKING), ("reissue_bill", {**_BOOKING, "to": "company"})),
        ),
        Kind(
            "wrong bill",
            (
                "the bill of {amount} euros has a night too many",
                "the bill has breakfast for {amount} euros that we did not eat",
                "we pay {amount} euros for a drink that we did not have",
            ),
            (("compare_bill", _BOOKING), ("refund_part", {**_BOOKING, "euros": "{amount}"})),
            (("compare_bill", _BOOKING), ("ask_manager", {**_BOOKING, "euros": "{amount}"})),
            (8, 150),
        ),
        Kind(
            "left behind",
            (
                "I left my coat there",
                "my daughter's bear must be in the bed",
                "we forgot a bag in the night",
            ),
            (("search_lost_property", _BOOKING), ("send_parcel", {**_BOOKING, "paid_by": "guest"})),
            (("search_lost_property", _BOOKING), ("hold_item", {**_BOOKING, "days": 30})),
        ),
    ),
    frames=(
        "Booking {ref}, {thing}: {clause}.",
        "{Clause}. The booking is {ref}, a {thing}.",
        "About our {thing} with you ({ref}): {clause}.",
    ),
    openings=("", "", "Hello. ", "{name} here. "),
    closings=("", "", " Kind regards, {name}", " We look forward to it.", " We have been with you before."),
    things=("double room", "single room", "twin room", "suite", "room with a view", "quiet room"),
    reference="B{}",
)
