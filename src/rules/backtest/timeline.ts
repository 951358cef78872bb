import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOptions, checkText } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import { axisMarks } from './timeline-axis.ts'
import { escaped, keyText, placedText, spanText, timeText } from './timeline-text.ts'
import { STYLE } from './timeline-style.ts'
import type { BacktestEpisode, BacktestReport, BacktestRule, BacktestUnknown } from './report.ts'
import type { PlacedCounts } from './place-history.ts'

/** Settings of {@link timelineHtml}. */
interface TimelineOptions {
  /** Title of the page. Default: Backtest of alert rules. */
  readonly title?: string
  /** How the events were placed, if by {@link placeHistory}. */
  readonly placed?: PlacedCounts
}

/** Sizes in units of the picture. */
const LABELS = 230
const PLOT = 900
const RIGHT = 20
const WIDTH = LABELS + PLOT + RIGHT
const BAR = 12
const ROW = BAR + 3
const LANE_PADDING = 8
const AXIS = 34
const EVENTS = 46

/** The most rows of a lane. Further episodes lie over others. */
const MAX_ROWS = 12
/** The narrowest bar. */
const MIN_BAR = 3
/** The most episodes in the list under the picture. */
const MAX_LISTED = 1_000
/** The most marks of the axis. */
const MAX_MARKS = 10

/**
 * Draws a backtest as an HTML page with a timeline: a lane for each rule, a bar for each episode, events as ticks. The page needs
 * no script and loads nothing. Texts of events are escaped. It is light or dark like its reader's system.
 *
 * @example
 * ```ts
 * import { writeFile } from 'node:fs/promises'
 * import { backtest, loadRules, timelineHtml } from 'rivulet/rules'
 *
 * const report = await backtest(await loadRules('rules.yaml'), [])
 * await writeFile('timeline.html', timelineHtml(report))
 * ```
 */
export function timelineHtml(report: BacktestReport, options: TimelineOptions = {}): string {
  const given: unknown = report
  if (!isObject(given) || !Array.isArray(given['rules']) || !Array.isArray(given['episodes']))
    throw new ArgumentError('report', 'a report of backtest', given)
  checkOptions('options', options, ['title', 'placed'])
  const { title = 'Backtest of alert rules', placed } = options
  checkText('options.title', title)
  const body = [
    `<h1>${escaped(title, 200)}</h1>`,
    summary(report, placed),
    report.from === null ? '' : `<div class="scroll">${picture(report)}</div>`,
    legend(),
    ruleTable(report.rules),
    episodeList(report),
  ]
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    `<title>${escaped(title, 200)}</title>`,
    `<style>${STYLE}</style>`,
    '</head>',
    '<body>',
    ...body.filter((part) => part !== ''),
    '</body>',
    '</html>',
    '',
  ].join('\n')
}

function summary({ from, to, events, rules, omitted }: BacktestReport, placed?: PlacedCounts): string {
  if (from === null || to === null) return '<p>There are no events.</p>'
  const fired = rules.reduce((sum, rule) => sum + rule.fired, 0)
  const silent = rules.filter((rule) => rule.fired === 0).length
  const lines = [
    `${timeText(from)} to ${timeText(to)} (UTC), ${spanText(to - from)}.`,
    `${counted(events, 'event')}, ${counted(fired, 'alert')} of ${rules.length - silent} of ${counted(rules.length, 'rule')}.`,
  ]
  if (placed !== undefined) lines.push(placedText(placed))
  if (omitted > 0) lines.push(`The last ${counted(omitted, 'alert')} are not drawn.`)
  return `<p>${lines.join('<br>')}</p>`
}

function picture(report: BacktestReport): string {
  const { from, to, rules, episodes, unknown } = report
  const begin = Math.min(from ?? 0, ...episodes.slice(0, 1).map(({ since }) => since))
  const end = Math.max(to ?? begin, begin + 1_000)
  const x = (at: number) =>
    round(LABELS + ((Math.min(Math.max(at, begin), end) - begin) / (end - begin)) * PLOT)
  const byRule = Map.groupBy(episodes, ({ rule }) => rule)
  const unknownByRule = Map.groupBy(unknown, ({ rule }) => rule)

  const lanes: string[] = []
  let y = AXIS + EVENTS
  for (const rule of rules) {
    const rows = packed(byRule.get(rule.rule) ?? [], (episode) => [
      x(episode.since),
      Math.max(x(episode.resolved ?? end), x(episode.fired) + MIN_BAR),
    ])
    const height = Math.max(1, rows.count) * ROW + 2 * LANE_PADDING
    lanes.push(lane(rule, rows.placed, unknownByRule.get(rule.rule) ?? [], { y, height, x }))
    y += height
  }
  const marks = axisMarks(begin, end, MAX_MARKS)
  const grid = marks.map(({ at, label }) => {
    const place = x(at)
    const anchor = place > LABELS + PLOT - 40 ? 'end' : place < LABELS + 40 ? 'start' : 'middle'
    return (
      `<line class="grid" x1="${place}" x2="${place}" y1="${AXIS - 8}" y2="${y}"/>` +
      `<text class="mark" x="${place}" y="${AXIS - 14}" text-anchor="${anchor}">${escaped(label)}</text>`
    )
  })
  return [
    `<svg viewBox="0 0 ${WIDTH} ${y + 8}" role="img" aria-label="Timeline of alerts">`,
    ...grid,
    eventTicks(report, x),
    ...lanes,
    '</svg>',
  ].join('\n')
}

interface Packed {
  readonly placed: readonly { readonly episode: BacktestEpisode; readonly row: number }[]
  readonly count: number
}

/** Gives each episode the first row that is free; the last row if none is free. */
function packed(
  episodes: readonly BacktestEpisode[],
  extent: (episode: BacktestEpisode) => readonly [left: number, right: number],
): Packed {
  const ends: number[] = []
  const placed = episodes.map((episode) => {
    const [left, right] = extent(episode)
    const free = ends.findIndex((end) => end < left)
    const row = free >= 0 ? free : Math.min(ends.length, MAX_ROWS - 1)
    ends[row] = Math.max(ends[row] ?? right, right)
    return { episode, row }
  })
  return { placed, count: ends.length }
}

function lane(
  { rule, fired }: BacktestRule,
  episodes: Packed['placed'],
  unknown: readonly BacktestUnknown[],
  { y, height, x }: { readonly y: number; readonly height: number; readonly x: (at: number) => number },
): string {
  const middle = y + height / 2
  const count = fired === 0 ? 'never' : `${fired}×`
  const bars = episodes.map(({ episode, row }) => bar(episode, y + LANE_PADDING + row * ROW, x))
  const marks = unknown.map(
    ({ at, reason, key }) =>
      `<text class="unknown" x="${x(at)}" y="${y + height - 3}" text-anchor="middle">?<title>${escaped(`${timeText(at)}: not known (${reason}) ${keyText(key)}`, 500)}</title></text>`,
  )
  return [
    `<line class="rule" x1="0" x2="${WIDTH}" y1="${y}" y2="${y}"/>`,
    `<text class="name${fired === 0 ? ' silent' : ''}" x="0" y="${middle + 4}">${escaped(rule, 22)}<title>${escaped(rule)}</title></text>`,
    `<text class="count" x="${LABELS - 12}" y="${middle + 4}" text-anchor="end">${count}</text>`,
    ...bars,
    ...marks,
  ].join('\n')
}

/** The pending part is pale. One that is firing at the end has no right edge. */
function bar(episode: BacktestEpisode, y: number, x: (at: number) => number): string {
  const { since, fired, resolved, labels } = episode
  const [left, middle] = [x(since), x(fired)]
  const right = Math.max(resolved === null ? LABELS + PLOT : x(resolved), middle + MIN_BAR)
  const severity = SEVERITIES.find((each) => each === labels['severity']?.toLowerCase()) ?? 'other'
  const pending =
    middle - left < 1
      ? ''
      : `<rect class="pending" x="${left}" y="${y}" width="${round(middle - left)}" height="${BAR}"/>`
  const open =
    resolved === null ? `<path class="open" d="M${round(right)} ${y}l6 ${BAR / 2}l-6 ${BAR / 2}z"/>` : ''
  return (
    `<g class="${severity}">${pending}<rect x="${middle}" y="${y}" width="${round(right - middle)}" height="${BAR}" rx="1.5"/>${open}` +
    `<title>${escaped(titleOf(episode), 2_000)}</title></g>`
  )
}

const SEVERITIES = ['critical', 'warning', 'info'] as const

function titleOf({
  rule,
  key,
  since,
  fired,
  resolved,
  reason,
  value,
  annotations,
  events,
}: BacktestEpisode): string {
  const lines = [
    `${rule} ${keyText(key)}`.trim(),
    `${timeText(fired)} to ${resolved === null ? 'the end' : timeText(resolved)}${reason === null ? '' : ` (${reason})`}`,
  ]
  if (since !== fired) lines.push(`since ${timeText(since)}`)
  if (value !== null) lines.push(`value ${value}`)
  for (const [name, text] of Object.entries(annotations)) lines.push(`${name}: ${text}`)
  for (const { type, id, time } of events.slice(-5))
    lines.push(`${type} ${id}${time === null ? '' : ` ${time}`}`)
  return lines.join('\n')
}

/** The events over time: a tick for each span with events, whose height shows their number. */
function eventTicks({ counts: { from, step, counts } }: BacktestReport, x: (at: number) => number): string {
  const bottom = AXIS + EVENTS - 6
  const highest = counts.reduce((most, count) => Math.max(most, count), 1)
  const width = Math.max(1, Math.min(4, x(from + step) - x(from)))
  const ticks = counts.flatMap((count, index) => {
    if (count === 0) return []
    const at = from + index * step
    const height = round(6 + (Math.log1p(count) / Math.log1p(highest)) * (EVENTS - 18))
    const when = step > 1_000 ? `${timeText(at)}, within ${spanText(step)}` : timeText(at)
    return [
      `<rect x="${x(at)}" y="${round(bottom - height)}" width="${round(width)}" height="${height}"><title>${escaped(`${counted(count, 'event')}: ${when}`)}</title></rect>`,
    ]
  })
  return `<text class="name" x="0" y="${bottom - 8}">events</text><g class="events">${ticks.join('')}</g>`
}

function legend(): string {
  const kinds = [...SEVERITIES, 'other'].map(
    (severity) =>
      `<span class="${severity}"><i></i>${severity === 'other' ? 'no severity' : severity}</span>`,
  )
  return `<p class="legend">${kinds.join(' ')} <span class="other"><i class="pale"></i>pending</span> <span>? not known</span></p>`
}

function ruleTable(rules: readonly BacktestRule[]): string {
  const rows = rules.map(
    ({ rule, fired, resolved, firing, duration, late, unknown }) =>
      `<tr${fired === 0 ? ' class="silent"' : ''}><td>${escaped(rule)}</td>${[fired, resolved, firing].map((count) => `<td>${count}</td>`).join('')}` +
      `<td>${duration === 0 ? '' : spanText(duration)}</td><td>${late}</td><td>${unknown}</td></tr>`,
  )
  const heads = ['Rule', 'Fired', 'Resolved', 'Firing at the end', 'Time firing', 'Late events', 'Not known']
  return `<div class="scroll"><table class="rules"><tr>${heads.map((head) => `<th>${head}</th>`).join('')}</tr>\n${rows.join('\n')}</table></div>`
}

function episodeList({ episodes, omitted }: BacktestReport): string {
  if (episodes.length === 0) return ''
  const rows = episodes
    .slice(0, MAX_LISTED)
    .map(({ rule, key, fired, resolved, reason, value, annotations }) => {
      const texts = Object.values(annotations).join(' · ')
      const cells = [
        timeText(fired),
        resolved === null ? 'firing' : `${timeText(resolved)} ${reason ?? ''}`,
        `${rule} ${keyText(key)}`,
        value === null ? '' : String(value),
        texts,
      ]
      return `<tr>${cells.map((cell) => `<td>${escaped(cell.trim(), 500)}</td>`).join('')}</tr>`
    })
  const left = episodes.length - rows.length + omitted
  const more = left > 0 ? `<p>And ${counted(left, 'more alert')}.</p>` : ''
  const open = episodes.length <= 30 ? ' open' : ''
  return `<details${open}><summary>${counted(episodes.length, 'alert')}</summary><div class="scroll"><table><tr><th>Fired</th><th>Resolved</th><th>Alert</th><th>Value</th><th>Annotations</th></tr>\n${rows.join('\n')}</table></div>${more}</details>`
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function round(length: number): number {
  return Math.round(length * 10) / 10
}
