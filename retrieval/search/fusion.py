"""Reciprocal rank fusion: from each case's distance and relevance to its ranks and what they sum to."""

from sqlalchemy import CTE, ColumnElement, Float, case, cast, func, literal_column, or_, select, true


def fused(bank: CTE, profile: CTE, *, half: int, pool: int) -> CTE:
    """Returns the ``pool`` best cases with their ranks, best first; a half counts down to its rank ``half``.

    Args:
        bank: ``id``, ``distance`` and ``relevance`` of each case; NULL where it is not in that half.
        profile: one row with ``full_text_weight``, ``semantic_weight`` and ``rrf_k``.
        half: above it a rank contributes nothing.
        pool: how many cases stay.
    """
    ranked = _ranked(bank)
    depth: ColumnElement[int] = literal_column(str(half))

    def part(weight: str, rank: str) -> ColumnElement[object]:
        rank_column = ranked.c[rank]
        term = profile.c[weight] / (profile.c.rrf_k + cast(rank_column, Float))
        return case((rank_column <= depth, term), else_=literal_column("0.0"))

    rrf = (part("full_text_weight", "keyword_rank") + part("semantic_weight", "semantic_rank")).label("rrf")
    return (
        select(
            ranked.c.id,
            (literal_column("1") - ranked.c.distance).label("similarity"),
            ranked.c.semantic_rank,
            ranked.c.keyword_rank,
            rrf,
        )
        .select_from(ranked.join(profile, true()))
        .where(or_(ranked.c.semantic_rank <= depth, ranked.c.keyword_rank <= depth))
        .order_by(literal_column("rrf").desc(), ranked.c.id.desc())
        .limit(literal_column(str(pool)))
        .cte("fused")
    )


def _ranked(bank: CTE) -> CTE:
    """Gives each case its 1-based rank in either half; NULL where it is not in that half."""

    def rank(by: ColumnElement[object], present: ColumnElement[object]) -> ColumnElement[object]:
        return case((present.is_not(None), func.row_number().over(order_by=[by, bank.c.id.desc()])))

    return select(
        bank.c.id,
        bank.c.distance,
        rank(bank.c.distance.asc().nulls_last(), bank.c.distance).label("semantic_rank"),
        rank(bank.c.relevance.desc().nulls_last(), bank.c.relevance).label("keyword_rank"),
    ).cte("ranked")
