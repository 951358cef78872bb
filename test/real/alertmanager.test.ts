import { monitorEvent } from 'rivulet'
import type { EventLog } from 'rivulet/log'
import { notifyAlertmanager, defineRules, runRules } from 'rivulet/rules'
import type { NotifyProblem } from 'rivulet/rules'
import { expect, it, onTestFinished } from 'vitest'
import { alertLog, episodeOf, isReading } from '../rules/notify/alerts.ts'
import { Receiver } from '../rules/notify/requests.ts'
import type { Received } from '../rules/notify/requests.ts'
import { Alertmanager, configOf } from './alertmanager.ts'
import type { OnProblem } from '../../src/rules/notify/notify-problem.ts'

/** What Alertmanager posts to a webhook. */
interface Notification {
  readonly alerts: readonly { readonly status: string; readonly labels: Readonly<Record<string, string>> }[]
}

/** Longer than `group_wait` and `group_interval` of `configOf` together, in ms. */
const MIN_OPEN = 1_500

const notificationOf = ({ body }: Received): Notification => JSON.parse(body)

/** Each alert of each notification, as `firing A`. */
const notified = (received: readonly Received[]) =>
  received
    .flatMap((request) => notificationOf(request).alerts)
    .map(({ status, labels }) => `${status} ${labels['alertname']}`)

/** Resolves once the webhook was notified of this. */
const isNotified = (receiver: Receiver, ...texts: readonly string[]) =>
  receiver.until((received) => texts.every((text) => notified(received).includes(text)) || undefined)

async function start(log: EventLog, urls: readonly string[], onProblem?: OnProblem) {
  const job = notifyAlertmanager(log, {
    urls,
    resend: 1_000,
    minOpen: MIN_OPEN,
    ...(onProblem !== undefined && { onProblem }),
  })
  onTestFinished(() => job.stop())
  await isReading(log, 'alertmanager')
  return job
}

it('notifies each episode once, across restarts of the notifier and of Alertmanager', async () => {
  const receiver = await Receiver.start()
  const { url, ...server } = await started(configOf(receiver.url))
  const { open, append } = alertLog()
  const first = await open()
  await start(first, [url])
  const long = episodeOf({ alert: 'Long' })
  await append(long.firing)
  await isNotified(receiver, 'firing Long')

  await first.close()
  const meanwhile = episodeOf({ alert: 'Meanwhile' })
  await append(meanwhile.firing, meanwhile.resolved)
  await start(await open(), [url])
  await isNotified(receiver, 'firing Meanwhile', 'resolved Meanwhile')
  // It notifies again what it had no time to note.
  await server.instance.flushed()
  await server.instance.stop()
  await server.instance.startAgain()
  await server.instance.has('Long')
  const short = episodeOf({ alert: 'Short' })
  await append(short.firing, short.resolved, long.resolved)

  await isNotified(receiver, 'resolved Long', 'resolved Meanwhile', 'firing Short', 'resolved Short')
  expect(notified(receiver.received).toSorted()).toEqual(
    ['Long', 'Meanwhile', 'Short'].flatMap((name) => [`firing ${name}`, `resolved ${name}`]).toSorted(),
  )
})

it('notifies an episode of a rule once, across restarts of the rules and of Alertmanager', async () => {
  const rules = defineRules([
    {
      alert: 'Failing',
      on: ['monitor.error', 'monitor.completion'],
      when: "type == 'monitor.error'",
      key: { monitor: 'source' },
      resolve: { when: "type == 'monitor.completion'" },
    },
  ])
  const receiver = await Receiver.start()
  const { url, instance } = await started(configOf(receiver.url))
  const { open, append } = alertLog()
  const run = async () => {
    const log = await open()
    const running = runRules(log, rules, { startAt: 'start' })
    onTestFinished(() => running.stop())
    await start(log, [url])
    return log
  }
  const timestamp = () => new Date().toISOString()
  const failed = (error_message: string) =>
    monitorEvent('m', { event_type: 'error', error_message, timestamp: timestamp() }, 'poll')

  const log = await run()
  await append(failed('one'))
  await isNotified(receiver, 'firing Failing')
  await log.close()
  await instance.flushed()
  await instance.stop()
  await append(failed('two'))
  await instance.startAgain()
  await run()
  await instance.has('Failing')
  await append(monitorEvent('m', { event_type: 'completion', timestamp: timestamp() }, 'poll'))
  await isNotified(receiver, 'resolved Failing')

  expect(notified(receiver.received)).toEqual(['firing Failing', 'resolved Failing'])
})

it('never notifies an alert whose end is past when it first comes, although it answers 200', async () => {
  const receiver = await Receiver.start()
  const { url } = await started(configOf(receiver.url))
  const post = async (alertname: string, endsAt: number) => {
    const alert = {
      labels: { alertname },
      startsAt: new Date(Date.now() - 10_000).toISOString(),
      endsAt: new Date(endsAt).toISOString(),
    }
    const headers = { 'content-type': 'application/json' }
    return fetch(`${url}/api/v2/alerts`, { method: 'POST', headers, body: JSON.stringify([alert]) })
  }

  const response = await post('Past', Date.now() - 1_000)
  await post('Open', Date.now() + 60_000)
  await isNotified(receiver, 'firing Open')

  expect(response.status).toBe(200)
  expect(notified(receiver.received)).toEqual(['firing Open'])
})

it('groups alerts, and inhibits one by another', async () => {
  const receiver = await Receiver.start()
  const inhibit = `
inhibit_rules:
  - source_matchers: [severity="critical"]
    target_matchers: [severity="warning"]
    equal: [monitor]
`
  const { url, instance } = await started(configOf(receiver.url, inhibit))
  const { open, append } = alertLog()
  await start(await open(), [url])

  await append(
    episodeOf({ alert: 'Down', labels: { severity: 'critical', monitor: 'm1' } }).firing,
    episodeOf({ alert: 'Burst', labels: { severity: 'warning', monitor: 'm1' } }).firing,
    episodeOf({ alert: 'Group', labels: { monitor: 'm2' } }).firing,
    episodeOf({ alert: 'Group', labels: { monitor: 'm3' } }).firing,
  )
  await isNotified(receiver, 'firing Down', 'firing Group')
  await instance.has('Burst', ({ status }) => status.inhibitedBy.length === 1)

  const group = receiver.received.filter((request) => notified([request]).includes('firing Group'))
  expect(group.map((request) => notificationOf(request).alerts.length)).toEqual([2])
  expect(notified(receiver.received)).not.toContain('firing Burst')
})

it('is silenced by amtool', async () => {
  const receiver = await Receiver.start()
  const { url, instance } = await started(configOf(receiver.url))
  const { open, append } = alertLog()
  await start(await open(), [url])
  const silence = await instance.amtool('silence', 'add', 'alertname=Quiet', '--comment=a', '--author=b')

  await append(episodeOf({ alert: 'Quiet' }).firing, episodeOf({ alert: 'Loud' }).firing)
  await isNotified(receiver, 'firing Loud')
  await instance.has('Quiet', ({ status }) => status.silencedBy.includes(silence))

  expect(notified(receiver.received)).toEqual(['firing Loud'])
})

it('refuses an alert without labels, alone', async () => {
  const receiver = await Receiver.start()
  const { url } = await started(configOf(receiver.url))
  const { open, append } = alertLog()
  const log = await open()
  const { promise, resolve } = Promise.withResolvers<NotifyProblem>()
  await start(log, [url], resolve)

  await append(
    episodeOf({ alert: 'Empty', labels: { alertname: '' } }).firing,
    episodeOf({ alert: 'Good' }).firing,
  )
  await isNotified(receiver, 'firing Good')

  expect((await promise).error.message).toMatch(/ answered with 400: .*label/)
  expect(notified(receiver.received)).toEqual(['firing Good'])
})

it('gives every alert to all instances: a cluster notifies once', async () => {
  const receiver = await Receiver.start()
  // An instance notifies later than the one before it. An episode that ends meanwhile would be notified by both.
  const config = configOf(receiver.url, '', '4s')
  const one = await started(config, { join: undefined })
  const two = await started(config, { join: one.instance.address })
  await Promise.all([one.instance.members(2), two.instance.members(2)])
  const { open, append } = alertLog()
  await start(await open(), [one.url, two.url])
  const { firing, resolved } = episodeOf({ alert: 'Clustered' })

  await append(firing)
  await Promise.all([one.instance.lookedUp(1), two.instance.lookedUp(1)])
  await append(resolved)
  await isNotified(receiver, 'firing Clustered', 'resolved Clustered')
  await Promise.all([one.instance.lookedUp(2), two.instance.lookedUp(2)])

  expect(notified(receiver.received)).toEqual(['firing Clustered', 'resolved Clustered'])
})

it('gives every alert to all instances: two that do not know each other notify each', async () => {
  const receivers = [await Receiver.start(), await Receiver.start()] as const
  const [one, two] = receivers
  const urls = [(await started(configOf(one.url))).url, (await started(configOf(two.url))).url]
  const { open, append } = alertLog()
  await start(await open(), urls)
  const { firing, resolved } = episodeOf({ alert: 'Twice' })

  await append(firing, resolved)

  for (const receiver of receivers) {
    await isNotified(receiver, 'firing Twice', 'resolved Twice')
    expect(notified(receiver.received)).toEqual(['firing Twice', 'resolved Twice'])
  }
})

async function started(config: string, cluster?: { readonly join: string | undefined }) {
  const instance = await Alertmanager.start(config, cluster)
  return { url: instance.url, instance }
}
