"""Reciprocal rank fusion: from each case's distance and relevance to its ranks and what they sum to.

Proven cases and the others compete among their own for a way into the pool: a flood of the one kind
drives none of the other out, whatever it claims, and how many of it there are. Within the pool all have their ranks in
the whole bank.
"""

from sqlalchemy import CTE, ColumnElement, Float, case, cast, func, literal_column, or_, select, true

PROVEN_PART = 0.75
"""Which part of the pool is for proven cases, and the rest for the others, where there are enough of both."""


def fused(bank: CTE, profile: CTE, *, half: int, pool: int) -> CTE:
    """Returns the ``pool`` best cases with their ranks, best first; a half counts down to its rank ``half``.

    Args:
        bank: ``id``, ``distance``, ``relevance`` and ``proven`` of each case; the first two NULL where it is not in
            that half.
        profile: one row with ``full_text_weight``, ``semantic_weight`` and ``rrf_k``.
        half: a case that has so many of its kind before it in a half gets nothing from that half.
        pool: how many cases stay.
    """
    ranked = _ranked(bank)
    depth: ColumnElement[int] = literal_column(str(half))
    semantic, keyword = ranked.c.semantic_place <= depth, ranked.c.keyword_place <= depth

    def part(weight: str, rank: str, near: ColumnElement[bool]) -> ColumnElement[object]:
        term = profile.c[weight] / (profile.c.rrf_k + cast(ranked.c[rank], Float))
        return case((near, term), else_=literal_column("0.0"))

    rrf = part("full_text_weight", "keyword_rank", keyword) + part("semantic_weight", "semantic_rank", semantic)
    found = (
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
        .cte("found")
    )
    return _best(found, pool)


def _best(found: CTE, pool: int) -> CTE:
    """Returns the best of either kind up to its part of the pool, and then the best of all."""
    best_first = [found.c.rrf.desc(), found.c.id.desc()]
    place = func.row_number().over(partition_by=found.c.proven, order_by=best_first)
    part: ColumnElement[int] = literal_column(str(round(pool * PROVEN_PART)))
    rest: ColumnElement[int] = literal_column(str(pool - round(pool * PROVEN_PART)))
    beyond = place > case((found.c.proven, part), else_=rest)
    columns = [column for column in found.c if column.name != "proven"]
    placed = select(*columns, beyond.label("beyond")).subquery("placed")
    return (
        select(*(placed.c[column.name] for column in columns))
        .order_by(placed.c.beyond, placed.c.rrf.desc(), placed.c.id.desc())
        .limit(literal_column(str(pool)))
        .cte("fused")
    )


def _ranked(bank: CTE) -> CTE:
    """Gives each case its 1-based rank in either half, and its place among its kind; NULL where it is not in it."""

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
