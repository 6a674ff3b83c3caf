"""The experiment's report as tables: verdicts, arms, and transfer from family to family."""

from rich.console import Console
from rich.table import Table

from examples.experiment.report import Report


def print_report(report: Report, console: Console) -> None:
    """Prints the verdicts, the arms and the transfer matrix."""
    for table in (_verdicts(report), _arms(report), _transfer(report)):
        console.print(table)
    gains = ", ".join(f"{gain:+.0%}" for gain in report.gains)
    console.print(f"  Steps with memory against without, by place of the task in its kind: {gains}", highlight=False)
    price = report.price()
    console.print(
        f"  A task: {_text(price['tokens_added'], '.0f')} tokens added, {_text(price['tokens_saved'], '.0f')} saved,"
        f" each step counted once; memory pays where a step costs {_text(price['pays_from_tokens_a_step'], '.0f')}"
        f" tokens or more; memory errors: {len(report.memory_errors)};"
        f" environment failures: {len(report.crashes)}",
        highlight=False,
    )
    for each in report.crashes[:3]:
        console.print(f"  the environment failed in {each.task_id}: {each.error}", markup=False, style="red")
    console.print(report.adapter.explanation, style="dim", markup=False)


def _verdicts(report: Report) -> Table:
    title = f"{report.adapter.name}: {len(report.tested)} test tasks in pairs, seed {report.size.seed}"
    columns = ("claim", "predicted", "limit", "measured", "95 %, by task", "verdict")
    table = Table(*columns, title=title, title_justify="left")
    for each in report.predictions:
        value, interval = report.measured[each.key], report.differences.get(each.key)
        spread = "" if interval is None else f"{each.shown(interval.low)} to {each.shown(interval.high)}"
        numbers = (each.aim, each.shown(each.limit), each.shown(value), spread)
        table.add_row(each.claim, *numbers, each.verdict(value))
    return table


def _arms(report: Report) -> Table:
    arms = {name: arm for name, arm in report.summaries().items() if "bank of" not in name}
    table = Table("arm")
    for name in ("tasks", "success", "steps", "cases", "tokens added", "spent", "net won", "ms"):
        table.add_column(name, justify="right")
    for name, arm in arms.items():
        numbers = [(arm.success, ".0%"), (arm.steps, ".1f"), (arm.injected, ".1f")]
        numbers += [(arm.tokens_added, ".0f"), (arm.tokens_spent, ".0f"), (arm.tokens_net, "+.0f")]
        numbers += [(arm.wall_ms, ".0f")]
        table.add_row(name, str(arm.tasks), *(_text(value, form) for value, form in numbers))
    return table


def _transfer(report: Report) -> Table:
    families = list(report.matrix)
    table = Table("bank of \\ task of", title="success won, points / steps changed", title_justify="left")
    for number in range(len(families)):
        table.add_column(str(number + 1), justify="right")
    for number, bank in enumerate(families):
        cells = [report.cell(bank, family) for family in families]
        shown = [f"{_text(cell['success_points'], '+.0f')} / {_text(cell['steps_change'], '+.0%')}" for cell in cells]
        shown[number] = f"[bold]{shown[number]}[/bold]"
        table.add_row(f"{number + 1} {bank}", *shown)
    return table


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
