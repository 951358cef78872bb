/** The style of a timeline. */
export const STYLE = `
:root { color-scheme: light dark; --text: #1c2430; --dim: #657084; --line: #dde2ea; --back: #fff; --ticks: #7c8aa3;
  --critical: #c62836; --warning: #d97a06; --info: #2b6cd4; --other: #6b4fc0; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --dim: #98a3b5; --line: #303845; --back: #14181f; --ticks: #8492ab;
  --critical: #f0626d; --warning: #f0a040; --info: #6ea5ff; --other: #a58bf5; } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 1200px; margin: 24px auto; padding: 0 16px; }
h1 { font-size: 20px; margin: 0 0 8px; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
svg { display: block; width: 100%; min-width: 900px; height: auto; font-size: 12px; }
svg text { fill: var(--text); }
svg .mark, svg .count { fill: var(--dim); }
svg .silent { fill: var(--dim); }
svg .grid, svg .rule { stroke: var(--line); stroke-width: 1; }
.events rect { fill: var(--ticks); }
.critical { --colour: var(--critical); } .warning { --colour: var(--warning); } .info { --colour: var(--info); } .other { --colour: var(--other); }
svg g rect, svg g path { fill: var(--colour, var(--ticks)); }
svg g .pending { opacity: .35; }
svg g:hover > rect { filter: brightness(1.15); }
svg .unknown { font-weight: bold; fill: var(--dim); }
.legend { color: var(--dim); font-size: 12px; }
.legend span { margin-right: 14px; }
.legend i { display: inline-block; width: 18px; height: 10px; border-radius: 2px; margin-right: 5px; background: var(--colour); }
.legend .pale { opacity: .35; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { color: var(--dim); font-weight: 600; white-space: nowrap; }
details td:nth-child(-n+2) { white-space: nowrap; }
.rules td:not(:first-child), .rules th:not(:first-child) { text-align: right; }
.rules .silent td { color: var(--dim); }
details { margin-top: 20px; }
summary { cursor: pointer; font-weight: 600; margin-bottom: 8px; }
`
