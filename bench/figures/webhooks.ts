import { result } from '../figure.ts'
import type { Measure, Result, Target } from '../figure.ts'
import { alternately } from '../rounds.ts'
import { startServer } from '../server.ts'
import type { BenchServer } from '../server.ts'

/**
 * Webhooks of 500 bytes per second of processor time. Another process sends requests that are already signed, over 64 connections.
 *
 * - `webhooks`: received, verified, stored in the inbox of a log in a file, then answered. `createWebhookReceiver` with `log.inbox`
 *   behind `nodeListener`, against a `node:http` server with the same HMAC, rows and SQLite settings, which groups commits by the same
 *   rule but does not parse the body or check the timestamp. Each round has a new file.
 * - `webhook-by-hand`: delivered from memory, against the same by hand (`by-hand/webhooks.ts`). Each webhook must be delivered once.
 *
 * Each side has a process of its own (`servers/webhook-receiver.ts`): two sides in one share compiled code, and the ratio varied from run to run.
 */
export const measure: Measure = async (folder) => {
  await using sender = await startServer('webhook-sender')
  const compared = async (name: string, target?: Target): Promise<Result> => {
    await using ours = await startServer('webhook-receiver', [name, folder])
    await using byHand = await startServer('webhook-receiver', [`${name}-by-hand`, folder])
    const { ratio, ...details } = await alternately(
      () => rateOf(ours, sender),
      () => rateOf(byHand, sender),
      { rounds: 15 },
    )
    const figure = name === 'inbox' ? 'webhooks' : 'webhook-by-hand'
    return result(figure, ratio, target, { ...details, unit: 'webhooks/s' })
  }
  return [await compared('inbox'), await compared('memory', { atLeast: 0.85 })]
}

async function rateOf(receiver: BenchServer, sender: BenchServer): Promise<number> {
  const response = await fetch(`${receiver.url}/?sender=${sender.url}`)
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return Number(text)
}
