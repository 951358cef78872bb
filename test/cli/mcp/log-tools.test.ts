import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import { parseRules, runRules } from 'rivulet/rules'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { logTools } from '../../../src/cli/mcp/log-tools.ts'
import { append } from '../../log/append.ts'
import { change, fullRun } from '../../operators/events.ts'

const RULES = `
version: 1
rules:
  - alert: Acquired
    on: [monitor.event_stream]
    when: data.output.type == 'text' && data.output.content.contains('acquired')
    key: { monitor: source }
    lateness: 0
`

/** The tools of a log with these events. */
async function toolsOver(...events: readonly ResearchEvent[]) {
  const tools = await toolsOf(memoryStore())
  await tools.add(...events)
  return tools
}

async function toolsOf(store: ReturnType<typeof memoryStore>) {
  const log = await openLog(store)
  onTestFinished(() => log.close())
  const rules = parseRules(RULES)
  const tools = new Map(logTools({ log, rules, process: 'rules' }).map((tool) => [tool.name, tool]))
  const call = async (name: string, args: object = {}, signal = new AbortController().signal) => {
    const result = await tools.get(name)?.run({ ...args }, { signal, report: undefined })
    return { ...Object(result?.value), next: result?.next }
  }
  const add = (...added: readonly ResearchEvent[]) => append(store, added)
  const ids = async (args: object) =>
    (await call('recent_events', args)).events.map(({ id }: { id: string }) => id)
  return { log, rules, call, add, ids, tools: [...tools.values()] }
}

describe('recent_events', () => {
  it('gives events by type, source and time, oldest first, without what only programs need', async () => {
    const { call, ids } = await toolsOver(change('a', 'm1'), change('b', 'm2'), fullRun('r'))
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
    const all = await call('recent_events')

    expect(all).toMatchObject({ is_end: true, next: undefined })
    expect(all.events).toHaveLength(3)
    expect(Object.keys(all.events[0])).toEqual(['type', 'source', 'id', 'time', 'recorded', 'data'])
    expect(await ids({ types: ['monitor.event_stream'] })).toEqual(['a', 'b'])
    expect(await ids({ sources: ['m2'] })).toEqual(['b'])
    expect(await ids({ sources: ['/v1/monitors/m1', 'none'] })).toEqual(['a'])
    expect(await ids({ since: tomorrow })).toEqual([])
    expect(await ids({ until: '2020-01-01' })).toEqual([])
    expect(await ids({ types: ['no.such'] })).toEqual([])
  })

  it('goes on where an earlier result ended, and leaves no event out, however large they are', async () => {
    const ids = Array.from({ length: 30 }, (_, index) => `${index} `.padEnd(9_000, 'x'))
    const { call } = await toolsOver(...ids.map((id) => change(id)))
    const seen: string[] = []
    for (let position: string | undefined; ;) {
      const { events, next, is_end, ...result } = await call('recent_events', { after: position ?? null })
      seen.push(...events.map(({ id }: { id: string }) => id))
      expect(JSON.stringify(events).length).toBeLessThan(80_000)
      expect(is_end).toBe(next === undefined)
      ;({ position } = result)
      if (is_end) break
      expect(next).toContain(JSON.stringify(position))
    }

    expect(seen).toEqual(ids)
  })

  it('gives all that was recorded until a time from a log whose partitions are not in the order of time', async () => {
    let at = Date.now()
    const { add, ids } = await toolsOf(memoryStore({ partitions: 8, clock: () => at }))
    const until = new Date(at).toISOString()
    const monitors = Array.from({ length: 20 }, (_, index) => `m${index}`)
    await add(...monitors.map((monitor) => change(monitor, monitor)))
    at += 60_000
    await add(...monitors.map((monitor) => change(`late ${monitor}`, monitor)))

    expect((await ids({ until })).toSorted()).toEqual(monitors.toSorted())
  })

  it('gives one event that is larger than a result', async () => {
    const { call } = await toolsOver(change('x'.repeat(100_000)), change('b'))
    const first = await call('recent_events')

    expect(first.events).toHaveLength(1)
    expect((await call('recent_events', { after: first.position })).events).toMatchObject([{ id: 'b' }])
  })

  it('refuses a position of another log, and ends when the call is cancelled', async () => {
    const { call, add } = await toolsOver()
    for (const part of ['a', 'b', 'c']) {
      await add(...Array.from({ length: 200 }, (_, index) => change(`${part}${index}`)))
    }
    const gone = AbortSignal.abort(new Error('gone'))

    await expect(call('recent_events', { after: 'other' })).rejects.toThrow('position')
    await expect(call('recent_events', { sources: ['none'] }, gone)).rejects.toThrow('gone')
  })
})

describe('the tools for alerts', () => {
  it('say which alerts are open, and why one has fired', async () => {
    const { log, rules, call } = await toolsOver(
      change('other'),
      change('acquired by a'),
      change('acquired by b'),
    )
    const running = runRules(log, rules, { startAt: 'start' })
    onTestFinished(() => running.stop())
    await expect.poll(async () => (await call('alerts')).recent.length).toBe(1)
    const { open, recent, is_cut } = await call('alerts')
    const [{ data }] = recent

    expect({ open, is_cut }).toMatchObject({ open: [{ alert: 'Acquired', state: 'firing' }], is_cut: false })
    const explained = {
      events: [{ type: 'alert.firing', data: { alert: 'Acquired' } }],
      causes: [{ id: 'acquired by a' }],
      explanations: [
        { alert: 'Acquired', matches: 'yes', expressions: [{ name: 'when' }, { name: 'key.monitor' }] },
      ],
    }
    expect(await call('explain_alert', { alert: 'Acquired' })).toMatchObject(explained)
    expect(await call('explain_alert', { episode: data.episode })).toMatchObject(explained)
    await expect(call('explain_alert', { alert: 'Other' })).rejects.toThrow('no such alert that has fired')
    await expect(call('explain_alert')).rejects.toThrow('neither alert nor episode')
  })

  it('pass over events of alerts that have another shape than ours', async () => {
    const bad = [null, 'x', {}, { alert: 'A' }, { alert: 'A', episode: 'e', events: null }]
    const alert = (id: string, data: unknown) => ({
      ...change(id),
      type: 'alert.firing',
      source: '/rules/A',
      data,
    })
    const causes = [null, { source: 1, id: 'a' }, { source: 's', id: 'a', type: 't', time: 5 }]
    const whole = { alert: 'B', episode: 'e', events: causes }
    const { call } = await toolsOver(
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- What another program has written.
      ...([...bad, whole].map((data, index) => alert(`e${index}`, data)) as ResearchEvent[]),
    )

    await expect(call('explain_alert', { alert: 'None' })).rejects.toThrow('no such alert that has fired')
    expect(await call('explain_alert', { alert: 'A' })).toMatchObject({ causes: [] })
    expect(await call('explain_alert', { alert: 'B' })).toMatchObject({ causes: [] })
  })

  it('explain the last episode of an alert, however long ago it was, and at most 200 of its events', async () => {
    const DAY = 86_400_000
    const today = Date.now()
    let now = today - 60 * DAY
    const { add, call } = await toolsOf(memoryStore({ clock: () => now }))
    const alert = (type: string, id: string, name: string, episode: string) =>
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The parts of an alert that are read.
      ({
        ...change(id),
        type,
        source: `/rules/${name}`,
        data: { alert: name, episode, events: [] },
      }) as unknown as ResearchEvent
    await add(alert('alert.firing', '1', 'Old', 'old'), alert('alert.firing', '2', 'Both', 'first'))
    now = today - 3 * DAY
    await add(alert('alert.firing', '3', 'Both', 'second'))
    now = today
    const resolved = Array.from({ length: 250 }, (_, n) => alert('alert.resolved', `r${n}`, 'Both', 'second'))
    await add(...resolved)

    expect((await call('explain_alert', { alert: 'Old' })).events).toMatchObject([{ id: '1' }])
    const both = await call('explain_alert', { alert: 'Both' })
    expect(both.events[0]).toMatchObject({ id: '3' })
    expect(both.events).toHaveLength(200)
    expect(both.is_cut).toBe(true)
    expect(await call('explain_alert', { episode: 'first' })).toMatchObject({
      events: [{ id: '2' }],
      is_cut: false,
    })
  })

  it('end a search of a long log, and say how far they have looked', async () => {
    const DAY = 86_400_000
    let now = Date.now() - 20 * DAY
    const { log, add, call } = await toolsOf(memoryStore({ clock: () => now }))
    const data = {
      alert: 'A',
      episode: 'e',
      events: [{ source: 's', id: 'gone', type: 'alert.firing', time: null }],
    }
    for (let part = 0; part < 6; part++) {
      if (part === 3) now = Date.now()
      const alerts = Array.from({ length: 200 }, (_, n) => ({
        ...change(`${part}-${n}`),
        type: 'alert.firing',
        data,
      }))
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The parts of an alert that are read.
      await add(...(alerts as unknown as ResearchEvent[]))
    }
    const { read } = log
    /** Calls the tool, and ends its time with a page of the log. */
    const explained = async (alert: string, page: number) => {
      let left = page
      const timeout = new AbortController()
      vi.spyOn(AbortSignal, 'timeout').mockReturnValue(timeout.signal)
      vi.spyOn(log, 'read').mockImplementation((...args) => {
        left -= 1
        if (left === 0) timeout.abort(new Error('over'))
        return read.apply(log, args)
      })
      return call('explain_alert', { alert })
    }
    onTestFinished(() => void vi.restoreAllMocks())

    await expect(explained('None', 1)).rejects.toThrow('The log has too much of the last day to search it')
    await expect(explained('None', 3)).rejects.toThrow(
      `No such alert has fired since ${new Date(Date.now() - DAY).toISOString().slice(0, 10)}`,
    )
    await expect(explained('None', 100)).rejects.toThrow('The log has no such alert that has fired')
    expect(await explained('A', 3)).toMatchObject({ events: [{ id: '5-199' }], causes: [], is_cut: true })
    expect(await explained('A', 100)).toMatchObject({ causes: [], is_cut: false })
  })

  it('check a rule file, of a bounded size, and load nothing else', async () => {
    const { call } = await toolsOver()

    expect(await call('rules_check', { rules: RULES })).toMatchObject({ rules: ['Acquired'], problems: [] })
    expect(
      await call('rules_check', { rules: 'version: 1\nrules:\n  - { alert: A, on: [eror] }' }),
    ).toMatchObject({
      rules: [],
      problems: [{ line: 3, message: expect.stringContaining('did you mean error?') }],
    })
    expect((await call('rules_check', { rules: '&a [*a, *a' })).problems.length).toBeGreaterThan(0)
    await expect(call('rules_check', { rules: ' '.repeat(50_001) })).rejects.toThrow(
      'at most 50000 characters',
    )
  })

  it('are all read-only, and refuse what they do not know', async () => {
    const { tools, call } = await toolsOver()

    expect(tools.map(({ name, isReadOnly }) => [name, isReadOnly])).toEqual([
      ['recent_events', true],
      ['alerts', true],
      ['explain_alert', true],
      ['rules_check', true],
    ])
    for (const { name } of tools) await expect(call(name, { file: '/etc/passwd' })).rejects.toThrow('file')
    await expect(call('alerts', { since: 'yesterday' })).rejects.toThrow('since must be a time such as')
  })
})
