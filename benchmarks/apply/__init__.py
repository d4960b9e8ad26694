"""Ways to bring a change into a view, on real dbt runs: seconds, rows read and written, and what reading costs.

    python -m benchmarks.apply                 the grid
    python -m benchmarks.apply --must-show     the few cells of the headline table, more repetitions
    python -m benchmarks.apply report          table and chart from what was measured

grid (which cells) → project (dbt project, tables) → changes → measure (one refresh) → runner (the loop) → report
"""
