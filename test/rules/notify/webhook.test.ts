import type { EventLog } from 'rivulet/log'
import type { AlertWebhookOptions, NotifyProblem } from 'rivulet/rules'
import { notifyWebhook } from 'rivulet/rules'
import { verifySignature } from 'rivulet/webhooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { alertLog, episodeOf, inactiveOf, isReading, knownOf, unknownOf } from './alerts.ts'
import { Receiver } from './requests.ts'
import type { Received } from './requests.ts'

const PATH = '/hooks/T0/secret-path'

async function start(log: EventLog, receiver: Receiver, options: Partial<AlertWebhookOptions> = {}) {
  const problems: NotifyProblem[] = []
  const job = notifyWebhook(log, {
    url: receiver.url + PATH,
    onProblem: (problem) => void problems.push(problem),
    ...options,
  })
  onTestFinished(() => job.stop())
  await isReading(log, options.name ?? 'alert-webhook')
  return { job, problems }
}

/** The types and names of the alerts of a request. */
const alertsOf = ({ body }: Received): readonly string[] =>
  [JSON.parse(body)].flat().map(({ type, data }) => `${type.slice('alert.'.length)} ${data.alert}`)

describe('alertWebhook', () => {
  it('posts each event but that an alert is pending as a CloudEvent, in the order of its alert', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    await start(await open(), receiver)
    const { pending, firing, resolved } = episodeOf({ alert: 'A', complete: false })
    const between = [unknownOf({ alert: 'A' }), knownOf({ alert: 'A' })]
    await append(...inactiveOf({ alert: 'B' }), pending, firing, ...between, resolved)

    const requests = await receiver.requests(4)

    expect(requests.flatMap(alertsOf)).toEqual(['firing A', 'unknown A', 'known A', 'resolved A'])
    expect(requests[0]?.path).toBe(PATH)
    expect(requests[0]?.headers['content-type']).toBe('application/cloudevents+json')
    expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({
      specversion: '1.0',
      id: firing.id,
      source: '/rules/A',
      type: 'alert.firing',
      datacontenttype: 'application/json',
      data: firing.data,
    })
  })

  it('signs a request as the service signs its webhooks, with each secret', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    await start(await open(), receiver, { secrets: ['new secret', 'old secret'] })
    await append(episodeOf({ alert: 'A' }).firing)

    const [request] = await receiver.requests(1)

    const {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signature,
    } = request?.headers ?? {}
    const content = { id: String(id), timestamp: String(timestamp), body: request?.body ?? '' }
    expect(await verifySignature(content, String(signature), 'new secret')).toBe(true)
    expect(await verifySignature(content, String(signature), 'old secret')).toBe(true)
    expect(
      await verifySignature({ ...content, body: `${content.body} ` }, String(signature), 'old secret'),
    ).toBe(false)
  })

  it('begins at the end of the log', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    await append(episodeOf({ alert: 'Old' }).firing)
    await start(await open(), receiver)
    await append(episodeOf({ alert: 'New' }).firing)

    expect((await receiver.requests(1)).flatMap(alertsOf)).toEqual(['firing New'])
  })

  it('sends a request again with the same id and the same bytes, after any status but 2xx', async () => {
    let failures = 0
    const receiver = await Receiver.start((response) => {
      response.writeHead([500, 404, 200][failures++] ?? 200, { 'retry-after': '0' }).end()
    })
    const { open, append } = alertLog()
    const { problems } = await start(await open(), receiver)
    await append(episodeOf({ alert: 'A' }).firing)

    const requests = await receiver.requests(3)

    expect(new Set(requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(new Set(requests.map(({ body }) => body)).size).toBe(1)
    expect(problems.map(({ error }) => error.message)).toEqual([
      `${receiver.url} answered with 500`,
      `${receiver.url} answered with 404`,
    ])
  })

  it('posts others while notifications that the receiver refuses wait for their next attempt', async () => {
    const receiver = await Receiver.start((response, received) =>
      response.writeHead(alertsOf(received).join().includes('Bad') ? 400 : 200).end(),
    )
    const { open, append } = alertLog()
    await start(await open(), receiver)
    const bad = Array.from({ length: 10 }, (_, n) => episodeOf({ alert: `Bad${n}` }).firing)
    await append(...bad, episodeOf({ alert: 'Good' }).firing)

    await expect(
      receiver.until((all) => all.flatMap(alertsOf).find((text) => text === 'firing Good')),
    ).resolves.toBeDefined()
  })

  it('makes what is not accepted in time a dead letter, and hands it out again', async () => {
    let isUp = false
    const receiver = await Receiver.start((response) => response.writeHead(isUp ? 204 : 500).end())
    const { open, append } = alertLog()
    const log = await open()
    await start(log, receiver, { retryFor: 0 })
    await append(episodeOf({ alert: 'A' }).firing)
    await append(episodeOf({ alert: 'B' }).firing)
    await receiver.requests(2)
    while ((await log.deadLetters('alert-webhook').count()) < 2)
      await new Promise((resolve) => setImmediate(resolve))
    isUp = true

    await log.deadLetters('alert-webhook').redeliver('all')

    const again = (await receiver.requests(4)).slice(2)
    expect(again.flatMap(alertsOf).toSorted()).toEqual(['firing A', 'firing B'])
  })

  it('sends again what was not answered when the log was closed, with the same id', async () => {
    let isUp = false
    const receiver = await Receiver.start((response) => void (isUp && response.end()))
    const { open, append } = alertLog()
    const log = await open()
    const { job } = await start(log, receiver)
    await append(episodeOf({ alert: 'A' }).firing)
    await receiver.requests(1)
    await log.close()
    await job.done
    await append(episodeOf({ alert: 'B' }).firing)
    isUp = true

    await start(await open(), receiver)

    const requests = await receiver.requests(3)
    expect(requests.flatMap(alertsOf).toSorted()).toEqual(['firing A', 'firing A', 'firing B'])
    const ids = requests.filter((request) => alertsOf(request).includes('firing A'))
    expect(new Set(ids.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  })

  it('posts a group as a batch', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    await start(await open(), receiver, { grouping: { by: ['team'], wait: 50, interval: 100 } })
    await append(
      episodeOf({ alert: 'A', labels: { team: 'x' } }).firing,
      episodeOf({ alert: 'B', labels: { team: 'x' } }).firing,
      episodeOf({ alert: 'C', labels: { team: 'y' } }).firing,
    )

    const requests = await receiver.requests(2)

    expect(requests.map(alertsOf)).toEqual(expect.arrayContaining([['firing A', 'firing B'], ['firing C']]))
    expect(requests[0]?.headers['content-type']).toBe('application/cloudevents-batch+json')
  })

  it('puts together what exceeds its limit, and drops nothing', async () => {
    const receiver = await Receiver.start()
    const { open, append } = alertLog()
    const log = await open()
    await append(...Array.from({ length: 250 }, (_, n) => episodeOf({ alert: `A${n}` }).firing))
    await start(log, receiver, { limit: { max: 2, per: 100 } })
    const events = Array.from({ length: 250 }, (_, n) => episodeOf({ alert: `B${n}` }).firing)
    await append(...events)

    const requests = await receiver.until((all) =>
      all.flatMap(alertsOf).length >= 250 ? [...all] : undefined,
    )

    expect(new Set(requests.flatMap(alertsOf)).size).toBe(250)
    expect(requests.length).toBeLessThan(20)
  })

  it('shows nothing of its URL but the origin, and no secret', async () => {
    const receiver = await Receiver.start((response, { path, headers }) => {
      response.writeHead(400).end(`refused ${path} ${headers['authorization']} my secret`)
    })
    const { open, append } = alertLog()
    const log = await open()
    const { problems } = await start(log, receiver, {
      secrets: 'my secret',
      auth: { bearer: 'token-123' },
      retryFor: 0,
    })
    const down = await start(log, receiver, {
      name: 'down',
      url: 'http://127.0.0.1:1/secret-path?key=abcdefgh',
      retryFor: 0,
    })
    await append(episodeOf({ alert: 'A' }).firing)
    while ((await log.deadLetters('alert-webhook').count()) + (await log.deadLetters('down').count()) < 2) {
      await new Promise((resolve) => setImmediate(resolve))
    }

    const shown = [...problems, ...down.problems].map(
      ({ error }) => `${error.message} ${error.stack} ${String(error.cause)}`,
    )
    for (const name of ['alert-webhook', 'down']) {
      for await (const { error } of log.deadLetters(name).list()) shown.push(error.message)
    }
    expect(shown).toHaveLength(4)
    expect(shown[0]).toContain('refused (not shown) Bearer (not shown) (not shown)')
    expect(shown.join('\n')).not.toMatch(/secret-path|my secret|token-123|abcdefgh/)
  })

  it.each([
    [{ url: 'ftp://x' }, /^url must be a URL of http or https, got a string \(not shown\)$/],
    [{ url: 'http://x', secrets: '' }, /^secrets must be a non-empty string/],
    [{ url: 'http://x', secret: 'abc' }, /has no option secret; did you mean secrets\?$/],
    [{ url: 'http://x', limit: { max: 0, per: 1 } }, /^limit.max must be/],
    [{ url: 'http://x', grouping: { by: [1] } }, /^grouping.by must be/],
  ])('refuses %j', async (options, message) => {
    const { open } = alertLog()
    const log = await open()
    expect(() => notifyWebhook(log, options as unknown as AlertWebhookOptions)).toThrow(message)
  })
})
