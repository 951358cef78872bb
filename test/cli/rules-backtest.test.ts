import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { monitorEvent } from 'rivulet'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it } from 'vitest'
import { append } from '../log/append.ts'
import { answer, serve } from '../support/serve.ts'
import { tickAt } from '../support/ticks.ts'
import { folderOf, rivulet } from './command.ts'

const HOUR = 3_600_000
const BEGIN = Date.UTC(2026, 0, 1)

const RULES = `
version: 1
rules:
  - { alert: Found, on: [monitor.event_stream], key: { monitor: source }, resolve: { after: 30m } }
  - { alert: Never, on: [monitor.snapshot] }
`

const completed = (at: number) => ({ event_type: 'completion', timestamp: new Date(at).toISOString() })
const found = (id: string, event_date: string | null = null) => ({
  event_type: 'event_stream',
  event_id: id,
  event_group_id: id,
  event_date,
  output: { type: 'text', content: '<b>', basis: [] },
})

const json = (stdout: string): { type?: string; summary?: object }[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('rivulet rules backtest', () => {
  it('prints what rules would have done over a log, and writes a timeline', async () => {
    const folder = await folderOf({ 'rules.yaml': RULES })
    const file = join(folder, 'log.db')
    const clock = { now: BEGIN }
    const store = sqliteStore(file, { clock: () => clock.now })
    for (let hour = 0; hour < 3; hour++) {
      clock.now = BEGIN + hour * HOUR
      await append(store, [monitorEvent('m', found(`e${hour}`), 'poll', clock.now)])
      clock.now += HOUR / 2
      if (hour < 2) await append(store, [tickAt(clock.now)])
    }
    await store.close()
    const timeline = join(folder, 'timeline.html')
    const args = ['rules', 'backtest', '--log', file, '--rules', join(folder, 'rules.yaml')]
    const text = await rivulet([...args, '--timeline', timeline]).ended
    expect(text).toEqual({
      code: 0,
      stderr: '',
      stdout: [
        '3 events from 2026-01-01T00:00Z to 2026-01-01T02:00Z',
        '',
        'rule   fired  resolved  firing  time firing  late  unknown',
        'Found      3         2       1        1h 0m     0        0',
        'Never      0         0       0           0m     0        0',
        '',
      ].join('\n'),
    })
    expect(await readFile(timeline, 'utf8')).toContain('3 alerts of 1 of 2 rules')

    const { stdout } = await rivulet([...args, '--json']).ended
    const lines = json(stdout)
    expect(lines.map(({ type }) => type)).toEqual([
      'alert.firing',
      'alert.resolved',
      'alert.firing',
      'alert.resolved',
      'alert.firing',
      undefined,
    ])
    expect(lines.at(-1)).toMatchObject({ summary: { events: 3, rules: [{ fired: 3 }, { fired: 0 }] } })
  })

  it('places the history of a monitor, and says how', async () => {
    const now = Date.now()
    const old = new Date(now - 30 * 24 * HOUR).toISOString().slice(0, 10)
    const events = [
      found('late'),
      completed(now - 2 * HOUR),
      found('b'),
      completed(now - 4 * HOUR),
      found('a', old),
    ]
    const url = await serve((request, response) => {
      if (request.url?.includes('/events') === true) {
        const withCompletions = request.url.includes('include_completions=true')
        return answer(response, { events: withCompletions ? events : [] })
      }
      answer(response, {
        monitor_id: 'm',
        type: 'event_stream',
        status: 'active',
        frequency: '1h',
        settings: {},
      })
    })
    const folder = await folderOf({ 'rules.yaml': RULES })
    const args = [
      'rules',
      'backtest',
      '--monitor',
      'm',
      '--since',
      '90d',
      '--rules',
      join(folder, 'rules.yaml'),
    ]
    const env = { RIVULET_BASE_URL: url, RIVULET_API_KEY: 'key' }
    const { code, stdout } = await rivulet([...args, '--json'], env).ended
    expect(code).toBe(0)
    const lines = json(stdout)
    expect(lines.at(-1)).toMatchObject({
      summary: {
        placed: { time: 2, completion: 3, date: 0, unplaced: 0 },
        rules: [{ fired: 3, resolved: 3 }, {}],
      },
    })
    const text = await rivulet(args, env).ended
    expect(text.stdout).toContain(
      '\nPlaced by their own time: 2, by neighbouring completions: 3, by event_date: 0; unplaced and left out: 0.\n',
    )
  })

  it('needs a log or a monitor, and not both', async () => {
    const folder = await folderOf({ 'rules.yaml': RULES })
    const args = ['rules', 'backtest', '--rules', join(folder, 'rules.yaml')]
    expect(await rivulet(args).ended).toMatchObject({
      code: 2,
      stderr: 'rivulet: a backtest needs --log FILE or --monitor ID\n',
    })
    expect((await rivulet([...args, '--log', 'a.db', '--monitor', 'm']).ended).code).toBe(2)
  })
})
