import type { EventLog } from 'rivulet/log'
import { notifyAlertmanager, notifyWebhook } from 'rivulet/rules'
import { expect, it, onTestFinished, vi } from 'vitest'
import { alertLog, episodeOf, isReading } from './alerts.ts'
import { Receiver } from './requests.ts'

const onProblem = () => {}
const notifiers = {
  alertmanager: (log: EventLog, url: string) =>
    notifyAlertmanager(log, { urls: url, resend: 60_000, onProblem }),
  'alert-webhook': (log: EventLog, url: string) => notifyWebhook(log, { url, onProblem }),
}

it.each<[keyof typeof notifiers, string]>([
  ['alertmanager', '0'],
  ['alert-webhook', 'Sun, 06 Nov 1994 08:49:37 GMT'],
])('%s waits longer after each failure, although the receiver says Retry-After: %s', async (name, value) => {
  vi.spyOn(Math, 'random').mockReturnValue(0.02)
  onTestFinished(() => void vi.restoreAllMocks())
  const times: number[] = []
  const receiver = await Receiver.start((response) => {
    times.push(performance.now())
    response.writeHead(503, { 'retry-after': value }).end()
  })
  const { open, append } = alertLog()
  const log = await open()
  const job = notifiers[name](log, receiver.url)
  onTestFinished(() => job.stop())
  await isReading(log, name)
  await append(episodeOf({ alert: 'A' }).firing)

  await receiver.requests(5)

  const [first = 0, , , , fifth = 0] = times
  // 10, 20, 40 and 80 ms, each of which a timer may round down.
  expect(fifth - first).toBeGreaterThan(140)
})
