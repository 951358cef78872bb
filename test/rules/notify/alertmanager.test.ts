import { createServer } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { AddressInfo } from 'node:net'
import { filter, firstValueFrom } from 'rxjs'
import type { EventLog } from 'rivulet/log'
import { notifyAlertmanager } from 'rivulet/rules'
import type { AlertmanagerOptions, NotifyProblem } from 'rivulet/rules'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { AlertState } from '../../../src/rules/notify/alertmanager-process.ts'
import { alertLog, episodeOf, isReading, unknownOf } from './alerts.ts'
import { Receiver } from './requests.ts'
import type { Answer, Received } from './requests.ts'

interface Wire {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly startsAt: string
  readonly endsAt: string
  readonly generatorURL?: string
}

const alertsOf = ({ body }: Received): readonly Wire[] => JSON.parse(body)
const namesOf = (request: Received) => alertsOf(request).map(({ labels }) => labels['alertname'])
const isOpen = ({ endsAt }: Wire) => Date.parse(endsAt) > Date.now()

/** Answers as Alertmanager 0.25: a batch with one bad label is refused as a whole. */
const likeAlertmanager: Answer = (response, received) => {
  const isBad = alertsOf(received).some(({ labels }) => 'bad' in labels)
  response.writeHead(isBad ? 400 : 200).end(isBad ? '"label bad is refused"' : '')
}

/** Whether an alert was open when it came. */
const openWhenSent = new WeakMap<Wire, boolean>()
const wasOpen = (alert: Wire) => openWhenSent.get(alert) ?? false

/** Starts a notifier that resends fast, and keeps its problems. Resolves when it reads the log. */
async function start(log: EventLog, options: AlertmanagerOptions) {
  const problems: NotifyProblem[] = []
  const waiting = new Set<() => void>()
  const job = notifyAlertmanager(log, {
    resend: 100,
    minOpen: 100,
    onProblem: (problem) => {
      problems.push(problem)
      for (const wake of waiting) wake()
    },
    ...options,
  })
  onTestFinished(() => job.stop())
  const problem = (count: number) =>
    new Promise<NotifyProblem | undefined>((resolve) => {
      const look = () => problems.length >= count && resolve(problems[count - 1])
      waiting.add(look)
      look()
    })
  await isReading(log, options.name ?? 'alertmanager')
  return { job, problems, problem }
}

/** The first request in which an alert of this name is open, or over. */
const sent = (receiver: Receiver, name: string, open: boolean) =>
  receiver.until((received) =>
    received
      .flatMap(alertsOf)
      .find(
        (alert) =>
          alert.labels['alertname'] === name &&
          Date.parse(alert.endsAt) > Date.parse(alert.startsAt) + 100_000 === open,
      ),
  )

/** Number of entries that the notifier has not acknowledged. */
async function behind(log: EventLog): Promise<number> {
  const { readers } = await log.stats()
  return readers.find(({ kind }) => kind === 'consumer')?.lag.entries ?? Infinity
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await nextTurn()
}

/** An alert with the same end in several requests. That of an open alert moves with each. */
const sameEnd = (received: readonly Received[]) => {
  const byEnd = Map.groupBy(received.flatMap(alertsOf), ({ endsAt }) => endsAt)
  return [...byEnd.values()].find((same) => same.length >= 3)
}

describe('alertmanager', () => {
  it('sends an alert that fires with its labels, annotations and since, at once', async () => {
    const receiver = await Receiver.start(likeAlertmanager)
    const { open, append } = alertLog()
    await start(await open(), {
      urls: `${receiver.url}/prefix/`,
      resend: 60_000,
      generatorUrl: 'https://example.org/rules',
    })
    const since = '2026-01-02T03:04:05.000Z'
    await append(episodeOf({ alert: 'Late', labels: { severity: 'page' }, since }).firing)

    const [request] = await receiver.requests(1)

    expect(request?.path).toBe('/prefix/api/v2/alerts')
    expect(request && alertsOf(request)).toEqual([
      {
        labels: { alertname: 'Late', severity: 'page' },
        annotations: { summary: 'Late happens' },
        startsAt: since,
        endsAt: expect.any(String),
        generatorURL: 'https://example.org/rules',
      },
    ])
    const [wire] = request === undefined ? [] : alertsOf(request)
    expect(Date.parse(wire?.endsAt ?? '') - Date.now()).toBeGreaterThan(180_000)
  })

  it('sends an open alert again and again with an end that is ahead', async () => {
    const receiver = await Receiver.start(likeAlertmanager)
    const { open, append } = alertLog()
    await start(await open(), { urls: receiver.url, resend: 20 })
    await append(episodeOf({ alert: 'Open' }).firing)

    const requests = await receiver.requests(4)

    const ends = requests.flatMap(alertsOf).map(({ endsAt }) => Date.parse(endsAt))
    expect(ends).toEqual(ends.toSorted((a, b) => a - b))
    expect(new Set(ends).size).toBeGreaterThan(1)
  })

  it('keeps an episode open for minOpen before it sends that it is over', async () => {
    const receiver = await Receiver.start(likeAlertmanager)
    const { open, append } = alertLog()
    await start(await open(), { urls: receiver.url, resend: 50_000, minOpen: 150 })
    const { firing, resolved } = episodeOf({ alert: 'Short' })
    const began = Date.now()
    await append(firing, resolved)

    const over = await sent(receiver, 'Short', false)

    expect(isOpen(await sent(receiver, 'Short', true))).toBe(true)
    expect(Date.parse(over.endsAt)).toBeGreaterThanOrEqual(began + 150)
    expect(Date.parse(over.endsAt)).toBeLessThanOrEqual(Date.now())
  })

  it('sends an alert that is over again', async () => {
    const receiver = await Receiver.start(likeAlertmanager)
    const { open, append } = alertLog()
    await start(await open(), { urls: receiver.url, resend: 20, minOpen: 0 })
    const { firing, resolved } = episodeOf({ alert: 'Over', since: '2026-01-02T03:04:05.000Z' })
    await append(firing)
    await receiver.requests(1)
    await append(resolved)

    const again = await receiver.until(sameEnd)

    expect(again.every((alert) => !isOpen(alert))).toBe(true)
  })

  it('opens an episode that began and ended while it did not run', async () => {
    const receiver = await Receiver.start(likeAlertmanager)
    const { open, append } = alertLog()
    const first = await open()
    const { job } = await start(first, { urls: receiver.url })
    await append(episodeOf({ alert: 'Before' }).firing)
    await receiver.requests(1)
    await job.stop()
    await first.close()
    const { firing, resolved } = episodeOf({ alert: 'Meanwhile' })
    await append(firing, resolved)

    await start(await open(), { urls: receiver.url })

    expect(
      await receiver.until((all) =>
        all.flatMap(alertsOf).find((alert) => alert.labels['alertname'] === 'Meanwhile'),
      ),
    ).toSatisfy(isOpen)
    await receiver.until((all) =>
      all.flatMap(alertsOf).find((alert) => alert.labels['alertname'] === 'Meanwhile' && !isOpen(alert)),
    )
  })

  it('sends at its first start what fires, and not what was over', async () => {
    const receiver = await Receiver.start(likeAlertmanager)
    const { open, append } = alertLog()
    const old = episodeOf({ alert: 'Old' })
    await append(old.firing, old.resolved, episodeOf({ alert: 'Still' }).firing)

    await start(await open(), { urls: receiver.url, resend: 50 })

    const requests = await receiver.requests(3)
    const opened = requests.flatMap(alertsOf).filter(isOpen)
    expect(opened.map(({ labels }) => labels['alertname'])).toEqual(expect.arrayContaining(['Still']))
    expect(opened.map(({ labels }) => labels['alertname'])).not.toContain('Old')
  })

  it('sends the alerts of a refused batch one by one, and reports the bad one as a dead letter', async () => {
    const receiver = await Receiver.start(likeAlertmanager)
    const { open, append } = alertLog()
    const log = await open()
    const { problem } = await start(log, { urls: receiver.url, resend: 100, minOpen: 0 })
    await append(
      episodeOf({ alert: 'A' }).firing,
      episodeOf({ alert: 'B', labels: { bad: 'x' } }).firing,
      episodeOf({ alert: 'C' }).firing,
    )

    await receiver.until((all) => all.slice(1).flatMap(namesOf).includes('C') || undefined)

    const { error } = (await problem(1)) ?? {}
    expect(error?.message).toBe(`${receiver.url} answered with 400: "label bad is refused"`)
    const [first, second] = receiver.received
    expect(first && namesOf(first)).toEqual(['A', 'B', 'C'])
    expect(second && namesOf(second)).toEqual(['A'])
    await receiver.requests(receiver.received.length + 2)
    const sources: string[] = []
    for await (const { entry } of log.deadLetters('alertmanager').list()) sources.push(entry.source)
    expect(sources).toEqual(['/rules/B'])
    expect(receiver.received.slice(4).flatMap(namesOf)).not.toContain('B')
  })

  it('sends an alert with a name that only later versions take on its own', async () => {
    const receiver = await Receiver.start((response) => response.end())
    const { open, append } = alertLog()
    await start(await open(), { urls: receiver.url, resend: 60_000 })
    await append(
      episodeOf({ alert: 'A' }).firing,
      episodeOf({ alert: 'B', labels: { 'a-b': 'x' } }).firing,
      episodeOf({ alert: 'C' }).firing,
    )

    const requests = await receiver.requests(2)

    expect(requests.map(namesOf)).toEqual(expect.arrayContaining([['B'], ['A', 'C']]))
  })

  it('sends batches of at most 500 alerts and about 1 MiB', async () => {
    const receiver = await Receiver.start((response) => response.end())
    const { open, append } = alertLog()
    const summary = 'x'.repeat(10_000)
    for (let part = 0; part < 6; part++) {
      await append(
        ...Array.from({ length: 100 }, (_, n) => episodeOf({ alert: `Small${part}-${n}` }).firing),
        ...Array.from(
          { length: 30 },
          (_, n) => episodeOf({ alert: `Long${part}-${n}`, annotations: { summary } }).firing,
        ),
      )
    }
    await start(await open(), { urls: receiver.url, resend: 60_000 })

    const requests = await receiver.until((all) =>
      new Set(all.flatMap(namesOf)).size === 780 ? [...all] : undefined,
    )

    expect(requests.every((request) => alertsOf(request).length <= 500)).toBe(true)
    expect(requests.every(({ body }) => body.length <= 1.1 * 1024 * 1024)).toBe(true)
    expect(requests.length).toBeLessThan(8)
  })

  const failures: readonly [string, Answer][] = [
    ['an error', (response) => response.writeHead(500).end('broken')],
    ['a cut connection', (response) => response.destroy()],
    ['no answer', () => undefined],
  ]

  it.each(failures)('sends an alert again after %s', async (_, failing) => {
    let left = 2
    const receiver = await Receiver.start((response, received, request) =>
      left-- > 0 ? failing(response, received, request) : response.end(),
    )
    const { open, append } = alertLog()
    const { problems } = await start(await open(), { urls: receiver.url, resend: 100, timeout: 600 })
    await append(episodeOf({ alert: 'A' }).firing)

    const requests = await receiver.requests(3)

    expect(requests.map(namesOf)).toEqual([['A'], ['A'], ['A']])
    expect(problems.map(({ attempt }) => attempt)).toEqual([1, 2])
  })

  it.each([0, 1, 2, 3, 4, 5, 8, 13, 21])(
    'ends with its log, which is closed after %i turns',
    async (turns) => {
      const receiver = await Receiver.start()
      const { open, append } = alertLog()
      await append(episodeOf({ alert: 'A' }).firing)
      const log = await open()
      const { job } = await start(log, { urls: receiver.url })
      for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate)
      await log.close()

      await expect(job.done).resolves.toBeUndefined()
    },
  )

  it('gives every instance every alert, and does not wait for one that is down', async () => {
    const [one, two] = [await Receiver.start(), await Receiver.start(() => undefined)]
    const { open, append } = alertLog()
    const { problem } = await start(await open(), {
      urls: [one.url, two.url, await closedUrl()],
      timeout: 2_000,
    })
    await append(episodeOf({ alert: 'A' }).firing)
    await two.requests(1)
    await append(episodeOf({ alert: 'B' }).firing)

    await one.until((all) => all.flatMap(namesOf).includes('B') || undefined)

    expect(two.received).toHaveLength(1)
    expect((await problem(1))?.error.message).toMatch(/could not be reached \(ECONNREFUSED\)$/)
  })

  it('sends what an instance missed once it answers, and opens an episode that ended meanwhile', async () => {
    let isUp = false
    const receiver = await Receiver.start((response) =>
      isUp ? response.end() : response.writeHead(503).end(),
    )
    const { open, append } = alertLog()
    const { problem } = await start(await open(), { urls: receiver.url, minOpen: 50 })
    const { firing, resolved } = episodeOf({ alert: 'Missed' })
    await append(firing, resolved)
    await problem(2)
    isUp = true
    const missed = receiver.received.length

    await receiver.until((all) =>
      all
        .slice(missed)
        .flatMap(alertsOf)
        .find((alert) => !isOpen(alert)),
    )

    const [first] = receiver.received.slice(missed).flatMap(alertsOf)
    expect(Date.parse(first?.endsAt ?? '')).toBeGreaterThan(Date.parse(first?.startsAt ?? '') + 300)
  })

  it('sends again after a restart what it had not kept open for minOpen', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    const log = await open()
    await start(log, { urls: receiver.url, minOpen: 60_000, resend: 60_000 })
    const { firing, resolved } = episodeOf({ alert: 'A' })
    await append(firing)
    await receiver.requests(1)
    await log.close()
    await append(resolved)
    const restarted = receiver.received.length

    await start(await open(), { urls: receiver.url, minOpen: 100, resend: 60_000 })

    await receiver.until((all) =>
      all
        .slice(restarted)
        .flatMap(alertsOf)
        .find((alert) => !isOpen(alert)),
    )
    const [again] = receiver.received.slice(restarted).flatMap(alertsOf)
    expect(Date.parse(again?.endsAt ?? '')).toBeGreaterThan(Date.parse(again?.startsAt ?? '') + 60_000)
  })

  it('counts minOpen from the first acceptance, over any number of restarts', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog({ clock: () => Date.now() })
    const now = Date.now.bind(Date)
    let later = 0
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + later)
    onTestFinished(() => clock.mockRestore())
    const options = { urls: receiver.url, minOpen: 60_000, resend: 60_000 }
    const { firing, resolved } = episodeOf({ alert: 'A' })
    const log = await open()
    await start(log, options)
    await append(firing, resolved)
    await receiver.requests(1)
    // The first request was answered, since the next one has come.
    await append(episodeOf({ alert: 'Other' }).firing)
    await receiver.requests(2)
    // The next entry of the log.
    later = 20_000
    await append(unknownOf({ alert: 'B' }))
    const states = log.state<AlertState>('alertmanager')
    const known = states
      .changes()
      .pipe(filter(({ state }) => state?.labels['alertname'] === 'A' && state.opened !== undefined))
    const { state } = await firstValueFrom(known)
    expect(now() - (state?.opened ?? 0)).toBeLessThan(20_000)
    // So it need not hold its events for minOpen, and is not behind.
    await until(async () => (await behind(log)) <= 2)
    await log.close()

    later = 40_000
    const second = await open()
    await start(second, options)
    const again = await receiver.until((all) =>
      all
        .slice(2)
        .flatMap(alertsOf)
        .find(({ labels }) => labels['alertname'] === 'A'),
    )
    expect(Date.parse(again.endsAt)).toBeGreaterThan(Date.now())
    await second.close()
    later = 80_000

    await start(await open(), options)

    const over = await sent(receiver, 'A', false)
    expect(Date.parse(over.endsAt)).toBeLessThanOrEqual(Date.now())
  })

  it('loses no episode while its log is closed again and again, and a receiver fails', async () => {
    let answers = 0
    const accepted: Wire[] = []
    const receiver = await Receiver.start((response, received) => {
      const status = answers++ % 3 === 0 ? 503 : 200
      const alerts = status === 200 ? alertsOf(received) : []
      for (const alert of alerts) openWhenSent.set(alert, isOpen(alert))
      accepted.push(...alerts)
      response.writeHead(status).end()
    })
    const { open, append } = alertLog()
    const options = { urls: receiver.url, minOpen: 100, resend: 100 }
    await start(await open(), options).then(({ job }) => job.stop())
    const names: string[] = []
    for (let round = 0; round < 6; round++) {
      const log = await open()
      const { job } = await start(log, options)
      const [one, two] = [episodeOf({ alert: `One${round}` }), episodeOf({ alert: `Two${round}` })]
      names.push(`One${round}`, `Two${round}`)
      await append(one.firing, one.resolved, two.firing)
      await receiver.requests(receiver.received.length + (round % 3))
      await log.close()
      await job.done
      await append(two.resolved)
    }

    await start(await open(), options)

    const has = (name: string, isOpenOne: boolean) =>
      accepted.some((alert) => alert.labels['alertname'] === name && wasOpen(alert) === isOpenOne)
    await receiver.until(() => names.every((name) => has(name, true) && has(name, false)) || undefined)
    for (const name of names) {
      const first = accepted.find(({ labels }) => labels['alertname'] === name)
      expect(first && wasOpen(first)).toBe(true)
    }
  })

  it('never shows credentials, also where a receiver sends them back', async () => {
    const receiver = await Receiver.start((response, { headers }) => {
      response.writeHead(401).end(`no: ${headers.authorization}`)
    })
    const { open, append } = alertLog()
    const log = await open()
    const { problems, problem } = await start(log, {
      urls: receiver.url.replace('//', '//ann:opensesame@'),
      resend: 30,
    })
    const bearer = await start(log, {
      urls: receiver.url,
      name: 'other',
      auth: { bearer: 'sk-12345678' },
      resend: 30,
    })
    await append(episodeOf({ alert: 'A' }).firing)

    await problem(1)
    await bearer.problem(1)

    const headers = receiver.received.map((request) => request.headers.authorization)
    const basic = `Basic ${Buffer.from('ann:opensesame').toString('base64')}`
    expect(headers).toEqual(expect.arrayContaining([basic, 'Bearer sk-12345678']))
    const shown = [...problems, ...bearer.problems].map(
      ({ error }) => error.message + String(error.stack) + String(error.cause),
    )
    expect(shown.join('\n')).toMatch(/answered with 401: no: (Basic|Bearer) \(not shown\)/)
    expect(shown.join('\n')).not.toMatch(/opensesame|sk-12345678|YW5u/)
  })

  it('does not follow a redirect with its credentials', async () => {
    const other = await Receiver.start()
    const receiver = await Receiver.start((response) =>
      response.writeHead(307, { location: other.url }).end(),
    )
    const { open, append } = alertLog()
    const { problem } = await start(await open(), { urls: receiver.url, auth: { bearer: 'sk-12345678' } })
    await append(episodeOf({ alert: 'A' }).firing)

    expect((await problem(1))?.error.message).toBe(
      `${receiver.url} answered with a redirect (307), which is not followed`,
    )
    expect(other.received).toEqual([])
  })

  it('reads little of an endless answer', async () => {
    const receiver = await Receiver.start((response) => {
      response.writeHead(500)
      const write = (): void => {
        while (response.write('x'.repeat(65_536)));
        response.once('drain', write)
      }
      write()
    })
    const { open, append } = alertLog()
    const { problem } = await start(await open(), { urls: receiver.url })
    await append(episodeOf({ alert: 'A' }).firing)

    expect((await problem(1))?.error.message.length).toBeLessThan(400)
  })

  it('sends on when the clock of the computer is set back', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    await start(await open(), { urls: receiver.url, resend: 20, minOpen: 20 })
    const { firing, resolved } = episodeOf({ alert: 'A', since: '2026-01-02T03:04:05.000Z' })
    await append(firing)
    await receiver.requests(1)

    const now = Date.now.bind(Date)
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() - 3_600_000)
    onTestFinished(() => clock.mockRestore())
    await receiver.requests(receiver.received.length + 3)
    await append(resolved)

    const over = await receiver.until(sameEnd)
    expect(over.some(isOpen)).toBe(false)
  })

  it('says in an annotation that the rule did not have all events, unless the rule has such an annotation', async () => {
    const receiver = await Receiver.start(likeAlertmanager)
    const { open, append } = alertLog()
    const log = await open()
    const { job } = await start(log, { urls: receiver.url, minOpen: 60_000 })
    const annotations = { incomplete: 'own' }
    await append(
      episodeOf({ alert: 'Gap', complete: false }).firing,
      episodeOf({ alert: 'Own', complete: false, annotations }).firing,
    )
    const incomplete = (name: string) => (received: readonly Received[]) =>
      received.flatMap(alertsOf).find(({ labels }) => labels['alertname'] === name)?.annotations['incomplete']

    expect(await receiver.until(incomplete('Gap'))).toBe(
      'The rule did not have all events when this alert began.',
    )
    expect(await receiver.until(incomplete('Own'))).toBe('own')

    // The state of the process has it as well.
    await job.stop()
    const again = await Receiver.start(likeAlertmanager)
    await start(log, { urls: again.url, minOpen: 60_000 })
    expect(await again.until(incomplete('Gap'))).toBe(
      'The rule did not have all events when this alert began.',
    )
  })

  it('sends the newest annotations of an alert that fires', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    await start(await open(), { urls: receiver.url, resend: 50 })
    const { firing } = episodeOf({ alert: 'A', since: '2026-01-02T03:04:05.000Z' })
    const edited = episodeOf({
      alert: 'A',
      since: '2026-01-02T03:04:05.000Z',
      annotations: { summary: 'edited' },
    })
    await append(firing)
    await receiver.requests(1)
    await append({ ...edited.firing, id: 'another' })

    const found = receiver.until((all) =>
      all.flatMap(alertsOf).find(({ annotations }) => annotations['summary'] === 'edited'),
    )
    await expect(found).resolves.toBeDefined()
  })

  it('sends the others where a receiver fails at one alert', async () => {
    const receiver = await Receiver.start((response, received) =>
      response.writeHead(namesOf(received).includes('Bad') ? 500 : 200).end(),
    )
    const { open, append } = alertLog()
    await start(await open(), { urls: receiver.url, resend: 60_000 })
    await append(
      episodeOf({ alert: 'Bad', labels: { 'a-b': 'sent alone' } }).firing,
      episodeOf({ alert: 'Good' }).firing,
    )

    await expect(receiver.until((all) => all.flatMap(namesOf).find((name) => name === 'Good'))).resolves.toBe(
      'Good',
    )
  })

  it('waits no longer than resend, whatever Retry-After says, since open alerts would end', async () => {
    const receiver = await Receiver.start((response) =>
      response.writeHead(503, { 'retry-after': '3600' }).end(),
    )
    const { open, append } = alertLog()
    await start(await open(), { urls: receiver.url, resend: 50 })
    await append(episodeOf({ alert: 'A' }).firing)

    await expect(receiver.requests(3)).resolves.toHaveLength(3)
  })

  it.each([
    ['labels', { labels: { big: '\u{1F4A5}'.repeat(60_000) } }],
    ['annotations', { annotations: { summary: 'x'.repeat(1_000_000) } }],
  ])('reports an alert with too large %s, of which the log could not keep the state', async (_, large) => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    const log = await open()
    const { problem } = await start(log, { urls: receiver.url, resend: 60_000 })
    await append(episodeOf({ alert: 'Large', ...large }).firing, episodeOf({ alert: 'A' }).firing)

    const { error, attempt } = (await problem(1)) ?? {}

    expect(error?.message).toMatch(/has labels and annotations of more than 192 KiB$/)
    expect(attempt).toBe(0)
    expect((await receiver.requests(1)).map(namesOf)).toEqual([['A']])
  })

  it('reports an event that is no alert as a dead letter, and goes on', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    const log = await open()
    const { problem } = await start(log, { urls: receiver.url })
    const { firing } = episodeOf({ alert: 'Odd' })
    await append({ ...firing, data: { alert: 'Odd', labels: { a: 1 } } } as unknown as typeof firing)
    await append(episodeOf({ alert: 'A' }).firing)

    await receiver.until((all) => all.flatMap(namesOf).includes('A') || undefined)

    expect((await problem(1))?.error.message).toMatch(/has no labels, or one that is not a text$/)
  })

  it.each([
    [{ urls: 'not a url: secret' }, /^urls must be a URL of http or https, got a string \(not shown\)$/],
    [{ urls: [] }, /^urls must be a URL, or a list of them/],
    [
      { urls: 'http://127.0.0.1:1', auth: { bearer: 'a\nb' } },
      /^auth.bearer must be visible ASCII, got a string \(not shown\)$/,
    ],
    [
      { urls: 'http://127.0.0.1:1', auth: { user: 'a' } },
      /^auth must be { bearer } or { user, password }, got an object$/,
    ],
    [
      { urls: 'http://127.0.0.1:1', generatorUrl: 'the rules' },
      /^generatorUrl must be a URL of http or https, got "the rules"$/,
    ],
    [{ urls: 'http://127.0.0.1:1', resend: 0 }, /^resend must be/],
    [{ urls: 'http://127.0.0.1:1', minopen: 1 }, /did you mean minOpen/],
  ])('refuses %j', async (options, message) => {
    const { open } = alertLog()
    const log = await open()
    expect(() => notifyAlertmanager(log, options as unknown as AlertmanagerOptions)).toThrow(message)
  })
})

/** A URL at which nothing listens. */
async function closedUrl(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}
