"""Models as people write them without this package: one that is usually seen, and one that is right.

The usual one reads facts of newer batches and merges them by key.  The right one keeps the versions it has seen in a
table, asks the change feed of every table for changed keys, walks up to the keys of the roots, and replaces those rows.
"""

from __future__ import annotations

from benchmarks.keys.schema import TABLES
from benchmarks.keys.sources import BATCH
from benchmarks.keys.views import GROUPED, PLAIN, View

#: macros of the generated project
MACROS = """
{#- Tables with their current versions; dbt renders hooks while parsing, too, when nothing can be asked. -#}
{% macro versions(tables) %}
  {%- set found = {} -%}
  {%- for table in tables if execute -%}
    {%- set rows = run_query('describe history ' ~ source('raw', table) ~ ' limit 1') -%}
    {%- do found.update({table: rows.rows[0]['version'] | int}) -%}
  {%- endfor -%}
  {{ return(found) }}
{% endmacro %}

{#- A table to be read beside its own change feed.  Without the version, Spark 4.1 with Delta 4.4 answers table_changes
    from the current rows when the same query reads the table, too. -#}
{% macro pinned(table) %}{{ source('raw', table) }} version as of {{ versions([table]).get(table, 0) }}{% endmacro %}

{% macro seen_table() %}{{ this }}__seen{% endmacro %}

{#- After a run: what it has seen. -#}
{% macro remember_versions(tables) %}
  create or replace table {{ seen_table() }} using delta as
  {% for name, version in versions(tables).items() -%}
    {{ 'union all ' if not loop.first }}select '{{ name }}' as name, {{ version }} as version
  {% endfor %}
{% endmacro %}

{#- Keys of the rows of a table that changed since. -#}
{% macro changed_keys(table, key) %}
  {%- set last = versions([table]).get(table, 0) -%}
  {%- set asked = "select version from " ~ seen_table() ~ " where name = '" ~ table ~ "'" -%}
  {%- set first = (run_query(asked).rows[0]['version'] | int) + 1 if execute else 1 -%}
  {%- if first <= last -%}
    select {{ key }} from table_changes('{{ source('raw', table) }}', {{ first }}, {{ last }})
  {%- else -%}
    select {{ key }} from {{ source('raw', table) }} where false
  {%- endif -%}
{% endmacro %}
"""


def usual(view: View, shape: str) -> str:
    """Config and query of the usual model."""
    key = view.root_key if shape == PLAIN else tuple(view.group_names)
    batches = [f"{root}.{BATCH}" for root in view.roots]
    newest = f"greatest({', '.join(batches)})" if len(batches) > 1 else batches[0]
    newer = f"{newest} > (select coalesce(max({BATCH}), -1) from {{{{ this }}}})"
    config = (
        "materialized='incremental', incremental_strategy='merge', file_format='delta',"
        f" unique_key={list(key)!r}".replace('"', "'")
    )
    where = f"where {view.where or 'true'}\n"
    if shape == PLAIN:
        select = view.select(PLAIN, *_hidden_key(view), f"{newest} as {BATCH}")
        guard = f"{{% if is_incremental() %}}\nand {newer}\n{{% endif %}}\n"
        return _model(config, f"select\n  {select}\nfrom {view.joins()}\n{where}{guard}")
    groups = ", ".join(view.groups())
    select = view.select(GROUPED, f"max({newest}) as {BATCH}")
    affected = f"select {groups} from {view.joins()}\n{where}and {newer}"
    guard = f"{{% if is_incremental() %}}\nand ({groups}) in (\n{affected}\n)\n{{% endif %}}\n"
    return _model(config, f"select\n  {select}\nfrom {view.joins()}\n{where}{guard}group by {groups}\n")


def right(view: View) -> str:
    """Config and query of the right model of the plain view."""
    before = [hook for root in view.roots for hook in (_find_affected(view, root), _delete_affected(root))]
    tables = list(dict.fromkeys(view.members.values()))
    after = f"{{{{ remember_versions({tables!r}) }}}}"
    config = "materialized='incremental', incremental_strategy='append', file_format='delta'"
    select = view.select(PLAIN, *_hidden_key(view))
    rows = f"select\n  {select}\nfrom {view.joins()}\n"
    where = f"where {view.where or 'true'}\n"
    body = f"{{% if is_incremental() %}}\n{_affected_rows(view, rows, where)}{{% else %}}\n{rows}{where}{{% endif %}}\n"
    sets = "".join(
        f"{{% set before_{n} %}}{{% raw %}}{hook}{{% endraw %}}{{% endset %}}\n" for n, hook in enumerate(before)
    )
    sets += f"{{% set after %}}{{% raw %}}{after}{{% endraw %}}{{% endset %}}\n"
    listed = ", ".join(f"before_{n}" for n in range(len(before)))
    return sets + _model(f"{config},\n  pre_hook=[{listed}], post_hook=[after]", body)


def right_grouped(view: View, plain_model: str) -> str:
    """A table over the right model of the plain view."""
    names = ", ".join(view.group_names)
    measures = ", ".join(item for name, item in view.outputs(GROUPED).items() if name not in view.group_names)
    query = f"select {names}, {measures}\nfrom {{{{ ref('{plain_model}') }}}}\ngroup by {names}\n"
    return _model("materialized='table', file_format='delta'", query)


def _model(config: str, query: str) -> str:
    return f"{{{{ config({config}) }}}}\n{query}"


def _hidden_key(view: View) -> list[str]:
    """Columns of the key that the view does not show."""
    return [column for column in view.root_key if column not in view.outputs(PLAIN)]


def _affected(root: str) -> str:
    return f"{{{{ this }}}}__affected_{root}"


def _find_affected(view: View, root: str) -> str:
    """Keys of a root whose rows may differ: its own changes, and rows that reference something that changed."""
    parts: list[str] = []
    for alias in _below(view, root):
        key = TABLES[view.members[alias]].primary_key
        found = [f"{{{{ changed_keys('{view.members[alias]}', '{', '.join(key)}') }}}}"]
        for edge in view.edges:
            if edge.referencing == alias:
                mine = ", ".join(f"{alias}.{column}" for column in key)
                found.append(
                    f"select {mine} from {{{{ pinned('{view.members[alias]}') }}}} {alias}"
                    f" left semi join touched_{edge.referenced} {edge.referenced} on {edge.condition}"
                )
        parts.append(f"touched_{alias} as (\n  " + "\n  union all ".join(found) + "\n)")
    table = f"create or replace table {_affected(root)} using delta as"
    query = f"{table}\nwith {', '.join(parts)}\nselect distinct * from touched_{root}"
    return f"{{% if is_incremental() %}}{query}{{% endif %}}"


def _below(view: View, alias: str) -> list[str]:
    """The aliases that a row of this one looks up, the farthest first, itself last."""
    found: list[str] = []
    for edge in view.edges:
        if edge.referencing == alias:
            found += [a for a in _below(view, edge.referenced) if a not in found]
    return [*found, alias]


def _delete_affected(root: str) -> str:
    same = " and ".join(f"t.{column} = s.{column}" for column in TABLES[root].primary_key)
    merge = f"merge into {{{{ this }}}} t using {_affected(root)} s on {same} when matched then delete"
    return f"{{% if is_incremental() %}}{merge}{{% endif %}}"


def _affected_rows(view: View, rows: str, where: str) -> str:
    """Rows with an affected key of the first root; of the next root, those that the first did not bring."""
    queries = []
    for position, root in enumerate(view.roots):
        joins = [_semi_join(root, "left semi join")]
        joins += [_semi_join(other, "left anti join") for other in view.roots[:position]]
        queries.append(rows + "".join(joins) + where)
    return "union all\n".join(queries)


def _semi_join(root: str, kind: str) -> str:
    same = " and ".join(f"{root}.{column} = affected_{root}.{column}" for column in TABLES[root].primary_key)
    return f"{kind} {_affected(root)} affected_{root} on {same}\n"
