"""Reciprocal rank fusion: turns each case's distance and relevance into ranks, and adds up their reciprocals.

Proven and unproven cases compete separately for places in the pool of candidates, so that many cases of one kind cannot
drive out the other kind. In the pool all cases keep their ranks in the whole bank.
"""

from sqlalchemy import CTE, ColumnElement, Float, case, cast, func, literal_column, or_, select, true

PROVEN_PART = 0.75
"""Share of the pool for proven cases; unproven ones have the rest, if there are enough of both."""


def fused(bank: CTE, profile: CTE, *, half: int, pool: int) -> CTE:
    """Returns a CTE of the best cases with their ranks, the best first.

    Args:
        bank: CTE with ``id``, ``distance``, ``relevance`` and ``proven`` of each case; ``distance`` or ``relevance`` is
            NULL if the case was not found by vector or by keyword.
        profile: CTE of one row with ``full_text_weight``, ``semantic_weight`` and ``rrf_k``.
        half: lowest rank by distance, and by relevance, that counts; a case below it gets 0 for that rank.
        pool: number of cases to keep.
    """
    ranked = _ranked(bank)
    depth: ColumnElement[int] = literal_column(str(half))
    semantic, keyword = ranked.c.semantic_place <= depth, ranked.c.keyword_place <= depth

    def part(weight: str, rank: str, near: ColumnElement[bool]) -> ColumnElement[object]:
        term = profile.c[weight] / (profile.c.rrf_k + cast(ranked.c[rank], Float))
        return case((near, term), else_=literal_column("0.0"))

    rrf = part("full_text_weight", "keyword_rank", keyword) + part("semantic_weight", "semantic_rank", semantic)
    candidates = (
        select(
            ranked.c.id,
            (literal_column("1") - ranked.c.distance).label("similarity"),
            ranked.c.semantic_rank,
            ranked.c.keyword_rank,
            ranked.c.proven,
            rrf.label("rrf"),
        )
        .select_from(ranked.join(profile, true()))
        .where(or_(semantic, keyword))
        .cte("candidates")
    )
    return _best(candidates, pool)


def _best(candidates: CTE, pool: int) -> CTE:
    """Returns the best proven and the best unproven cases up to their parts of the pool, and then the best of all."""
    best_first = [candidates.c.rrf.desc(), candidates.c.id.desc()]
    place = func.row_number().over(partition_by=candidates.c.proven, order_by=best_first)
    part: ColumnElement[int] = literal_column(str(round(pool * PROVEN_PART)))
    rest: ColumnElement[int] = literal_column(str(pool - round(pool * PROVEN_PART)))
    beyond = place > case((candidates.c.proven, part), else_=rest)
    columns = [column for column in candidates.c if column.name != "proven"]
    placed = select(*columns, beyond.label("beyond")).subquery("placed")
    return (
        select(*(placed.c[column.name] for column in columns))
        .order_by(placed.c.beyond, placed.c.rrf.desc(), placed.c.id.desc())
        .limit(literal_column(str(pool)))
        .cte("fused")
    )


def _ranked(bank: CTE) -> CTE:
    """Returns a CTE of each case's ranks by distance and by relevance, from 1, among all cases and among its kind.

    A rank is NULL if the case was not found by that measure.
    """

    def rank_and_place(
        by: ColumnElement[object], present: ColumnElement[object]
    ) -> tuple[ColumnElement[int], ColumnElement[int]]:
        order, rows = [by, bank.c.id.desc()], (None, 0)  # of one window, so one pass
        rank = func.row_number().over(order_by=order, rows=rows)
        proven = func.count().filter(bank.c.proven).over(order_by=order, rows=rows)
        place = case((bank.c.proven, proven), else_=rank - proven)
        return case((present.is_not(None), rank)), case((present.is_not(None), place))

    semantic_rank, semantic_place = rank_and_place(bank.c.distance.asc().nulls_last(), bank.c.distance)
    keyword_rank, keyword_place = rank_and_place(bank.c.relevance.desc().nulls_last(), bank.c.relevance)
    return select(
        bank.c.id,
        bank.c.distance,
        bank.c.proven,
        semantic_rank.label("semantic_rank"),
        keyword_rank.label("keyword_rank"),
        semantic_place.label("semantic_place"),
        keyword_place.label("keyword_place"),
    ).cte("ranked")
