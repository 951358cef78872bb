import { monitorEvent } from 'rivulet'
import { backtest, defineRules, timelineHtml } from 'rivulet/rules'
import { Parser } from 'htmlparser2'
import { describe, expect, it } from 'vitest'
import { axisMarks } from '../../../src/rules/backtest/timeline-axis.ts'

const BEGIN = Date.UTC(2026, 0, 1)
const HOUR = 3_600_000

const RULES = defineRules([
  {
    alert: 'Found',
    on: ['monitor.event_stream'],
    key: { text: 'text(data.output)' },
    labels: { severity: 'critical' },
    annotations: { summary: 'Found ${key.text}' },
    resolve: { after: '30m' },
  },
  { alert: 'Never', on: ['monitor.snapshot'] },
])

async function timeline(texts: readonly string[]): Promise<string> {
  const events = texts.map((content, index) => {
    const output = { type: 'text', content, basis: [] }
    const wire = {
      event_type: 'event_stream',
      event_id: `e${index}`,
      event_group_id: 'g',
      event_date: null,
      output,
    }
    return monitorEvent('m', wire, 'poll', BEGIN + index * HOUR)
  })
  return timelineHtml(await backtest(RULES, events, { until: BEGIN + texts.length * HOUR }), {
    title: texts[0] ?? '',
  })
}

/** The elements of a page, as counts by name, and the texts in it. */
function parsed(html: string) {
  const tags = new Map<string, number>()
  const attributes = new Set<string>()
  const texts: string[] = []
  const parser = new Parser({
    onopentag(name, own) {
      tags.set(name, (tags.get(name) ?? 0) + 1)
      for (const attribute of Object.keys(own)) attributes.add(attribute)
    },
    ontext: (text) => texts.push(text),
  })
  parser.end(html)
  return { tags, attributes, text: texts.join('') }
}

describe('a timeline', () => {
  it('has a lane for each rule, a bar for each episode and a tick for each event', async () => {
    const html = await timeline(['one', 'two', 'three'])
    expect(html.match(/<g class="critical">/g)).toHaveLength(3)
    expect(html.match(/<text class="name/g)).toHaveLength(3)
    expect(html).toContain('1 event: 2026-01-01 02:00')
    expect(html).toContain(
      'Found text=three\n2026-01-01 02:00 to 2026-01-01 02:30 (expired)\nsummary: Found three',
    )
    expect(html).toContain('3 events, 3 alerts of 1 of 2 rules.')
  })

  it.each([
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "</title></svg>' onload='x",
    '\u202Eabc\u0000\uD800',
  ])('has no markup of %j', async (text) => {
    const [hostile, plain] = [parsed(await timeline([text])), parsed(await timeline(['plain']))]
    expect(hostile.tags).toEqual(plain.tags)
    expect(hostile.attributes).toEqual(plain.attributes)
    expect(hostile.tags.has('script')).toBe(false)
    expect(['\u0000', '\u202E'].filter((each) => hostile.text.includes(each))).toEqual([])
    expect(hostile.text.isWellFormed()).toBe(true)
  })

  it('is of bounded size, whatever the events are', async () => {
    const long = await timeline(Array.from({ length: 500 }, (_, index) => `${index} ${'x'.repeat(5_000)}`))
    expect(long.match(/<g class="critical">/g)).toHaveLength(500)
    expect(long.length).toBeLessThan(2_500_000)
  })

  it('says that there are no events', () => {
    const none = {
      from: null,
      to: null,
      events: 0,
      counts: { from: 0, step: 1, counts: [] },
      rules: [],
      episodes: [],
      omitted: 0,
      unknown: [],
    }
    expect(timelineHtml(none)).toContain('There are no events.')
  })
})

describe('the axis of a timeline', () => {
  it.each([
    [2 * HOUR, ['Jan 1 2026, 00:00', '00:15', '00:30']],
    [2 * 24 * HOUR, ['Jan 1 2026, 00:00', '06:00', '12:00']],
    [10 * 24 * HOUR, ['Jan 1 2026', 'Jan 2', 'Jan 3']],
    [400 * 24 * HOUR, ['Jan 2026', 'Mar', 'May']],
    [4_000 * 24 * HOUR, ['Jan 2026', 'Jan 2028', 'Jan 2030']],
  ])('has whole times over %d ms', (span, first) => {
    const marks = axisMarks(BEGIN, BEGIN + span, 10)
    expect(marks.slice(0, 3).map(({ label }) => label)).toEqual(first)
    expect(marks.length).toBeLessThanOrEqual(11)
  })
})
