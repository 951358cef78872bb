import type { EventLog } from 'rivulet/log'
import type { NotifyProblem, SlackOptions } from 'rivulet/rules'
import { notifySlack } from 'rivulet/rules'
import { describe, expect, it, onTestFinished } from 'vitest'
import { alertLog, episodeOf, inactiveOf, isReading } from './alerts.ts'
import { Receiver } from './requests.ts'
import type { Received } from './requests.ts'

interface Message {
  readonly text: string
  readonly blocks: readonly {
    readonly type: string
    readonly text: { readonly text: string; readonly verbatim: boolean }
  }[]
}

const messageOf = ({ body }: Received): Message => JSON.parse(body)
const textsOf = (request: Received) => messageOf(request).blocks.map(({ text }) => text.text)

async function start(log: EventLog, receiver: Receiver, options: Partial<SlackOptions> = {}) {
  const problems: NotifyProblem[] = []
  const job = notifySlack(log, {
    url: `${receiver.url}/services/T000/B000/XXXXSECRET`,
    grouping: { wait: 20, interval: 50 },
    onProblem: (problem) => void problems.push(problem),
    ...options,
  })
  onTestFinished(() => job.stop())
  await isReading(log, 'slack')
  return { job, problems }
}

describe('slack', () => {
  it('posts a message for a group, with a section for each alert', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    await start(await open(), receiver, { link: 'https://example.org/rules?a=1&b=2' })
    const since = '2026-01-02T03:04:05.000Z'
    const one = episodeOf({ alert: 'Burst', labels: { monitor: 'mon_1' }, since })
    const two = episodeOf({ alert: 'Burst', labels: { monitor: 'mon_2' }, since })
    await append(...inactiveOf({ alert: 'Burst', since }), one.pending, one.firing, two.firing, one.resolved)

    const [request] = await receiver.requests(1)

    expect(request && messageOf(request).text).toBe('2 firing, 1 resolved: Burst')
    expect(request && textsOf(request)).toEqual([
      '*2 firing, 1 resolved: Burst* <https://example.org/rules?a=1&amp;b=2|rules>',
      `:red_circle: Firing *Burst* Burst happens\nmonitor: mon_1\nsince ${since}`,
      `:red_circle: Firing *Burst* Burst happens\nmonitor: mon_2\nsince ${since}`,
      `:large_green_circle: Resolved *Burst* Burst happens\nmonitor: mon_1\nsince ${since}`,
    ])
  })

  it('says that the rule of an alert did not have all events', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    await start(await open(), receiver)
    const since = '2026-01-02T03:04:05.000Z'
    await append(episodeOf({ alert: 'Gap', since, complete: false }).firing)

    const [request] = await receiver.requests(1)

    expect(request && textsOf(request)[1]).toBe(
      ':red_circle: Firing *Gap* Gap happens\n' +
        `incomplete: The rule did not have all events when this alert began.\nsince ${since}`,
    )
  })

  it('leaves out alerts that ended before they could be notified, if it is to ignore the past, and none that was notified', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    const log = await open()
    await start(log, receiver, { past: 'ignore' })
    const [one, two] = [{ monitor: 'mon_1' }, { monitor: 'mon_2' }].map((labels) =>
      episodeOf({ alert: 'Burst', labels }),
    )
    if (one === undefined || two === undefined) throw new Error('there are two')
    await append(one.firing, two.firing, one.resolved)
    const [first] = await receiver.requests(1)
    await append(two.resolved)
    const [, second] = await receiver.requests(2)

    expect([first, second].map((request) => request && messageOf(request).text)).toEqual([
      '1 firing: Burst',
      '1 resolved: Burst',
    ])
    await expect
      .poll(
        async () => (await log.stats()).readers.find(({ name }) => name === 'slack')?.oldestUnacknowledged,
      )
      .toBeNull()
  })

  it('escapes what could be a mention or a link', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    await start(await open(), receiver)
    const annotations = { summary: '<!channel> <@U1> <https://evil.example|here> & \u202E\u001B[31m\n*x*' }
    await append(episodeOf({ alert: 'A<!here>', labels: { 'x>': '<y>' }, annotations }).firing)

    const [request] = await receiver.requests(1)

    const text = request === undefined ? '' : [messageOf(request).text, ...textsOf(request)].join('\n')
    expect(text).toContain('&lt;!channel&gt; &lt;@U1&gt; &lt;https://evil.example|here&gt; &amp; [31m *x*')
    expect(text).toContain('x&gt;: &lt;y&gt;')
    for (const character of ['<', '>', '\u202E', '\u001B']) expect(text).not.toContain(character)
    expect(request && messageOf(request).blocks.every((block) => block.text.verbatim)).toBe(true)
  })

  it('keeps to the limits of Slack, and posts the rest in another message', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    await start(await open(), receiver, { grouping: { wait: 300, interval: 50 } })
    const long = '&'.repeat(1_000)
    const labels = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`label${n}`, long]))
    const count = 60
    await append(
      ...Array.from(
        { length: count },
        (_, n) =>
          episodeOf({ alert: 'A', labels: { ...labels, n: String(n) }, annotations: { summary: long } })
            .firing,
      ),
    )

    const requests = await receiver.requests(2)

    expect(requests.map((request) => messageOf(request).blocks.length)).toEqual([49, count - 48 + 1])
    const texts = requests.flatMap(textsOf)
    expect(Math.max(...texts.map(({ length }) => length))).toBeLessThanOrEqual(3_000)
    expect(texts.every((text) => !/&(?!amp;|lt;|gt;)/.test(text))).toBe(true)
  })

  it('waits as long as Retry-After says', async () => {
    let answers = 0
    const times: number[] = []
    const receiver = await Receiver.start((response) => {
      times.push(performance.now())
      if (answers++ === 0) response.writeHead(429, { 'retry-after': '1' }).end('rate_limited')
      else response.end('ok')
    })
    const { open, append } = alertLog()
    const { problems } = await start(await open(), receiver)
    await append(episodeOf({ alert: 'A' }).firing)

    await receiver.requests(2)

    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(990)
    expect(problems.map(({ error }) => error.message)).toEqual([
      `${receiver.url} answered with 429: rate_limited`,
    ])
  })

  it('posts alone what is refused with others, and makes only the bad one a dead letter', async () => {
    const receiver = await Receiver.start((response, received) => {
      const isBad = received.body.includes('Bad')
      response.writeHead(isBad ? 400 : 200).end(isBad ? 'invalid_blocks' : 'ok')
    })
    const { open, append } = alertLog()
    const log = await open()
    const { problems } = await start(log, receiver, { grouping: { by: [], wait: 20 } })
    await append(
      episodeOf({ alert: 'A' }).firing,
      episodeOf({ alert: 'Bad' }).firing,
      episodeOf({ alert: 'C' }).firing,
    )

    const requests = await receiver.requests(4)

    expect(requests.map((request) => messageOf(request).text)).toEqual([
      '3 firing: A, Bad, C',
      '1 firing: A',
      '1 firing: Bad',
      '1 firing: C',
    ])
    while ((await log.deadLetters('slack').count()) === 0)
      await new Promise((resolve) => setImmediate(resolve))
    expect(problems.map(({ error, attempt }) => [error.message, attempt])).toEqual([
      [`${receiver.url} answered with 400: invalid_blocks`, 0],
    ])
  })

  it('has its URL in no error', async () => {
    const receiver = await Receiver.start((response, { path }) =>
      response.writeHead(404).end(`no_service ${path}`),
    )
    const { open, append } = alertLog()
    const log = await open()
    const { problems } = await start(log, receiver, { retryFor: 0 })
    await append(episodeOf({ alert: 'A' }).firing)

    while ((await log.deadLetters('slack').count()) === 0)
      await new Promise((resolve) => setImmediate(resolve))
    expect(problems[0]?.error.message).toBe(`${receiver.url} answered with 404: no_service (not shown)`)
    for await (const { error } of log.deadLetters('slack').list())
      expect(error.message).not.toContain('XXXXSECRET')
    expect(() => notifySlack(log, { url: 'hooks.slack.com/services/XXXXSECRET' })).toThrow(
      /^(?!.*SECRET)url must be/,
    )
  })
})
