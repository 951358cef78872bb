import { expect, it, onTestFinished, vi } from 'vitest'
import { endpointOf } from '../../../src/webhooks/sink/endpoint.ts'
import { SinkError } from '../../../src/webhooks/sink/sink-error.ts'
import { post } from '../../../src/webhooks/sink/post.ts'
import type { SinkFetch } from '../../../src/webhooks/sink/post.ts'

const secret = 'https://ann:abc@hooks.example/services/T0/abc-Token%20Value?key=abcdefgh-ijkl'

async function failureOf(fetch: SinkFetch, headers: Record<string, string> = {}): Promise<string> {
  const { signal } = new AbortController()
  const sent = post(endpointOf('url', secret), { body: '{}', headers }, { fetch, timeout: 60_000 }, signal)
  const error: unknown = await sent.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(SinkError)
  expect((error as SinkError).cause).toBeUndefined()
  return (error as SinkError).message
}

it.each([
  'https://hooks.example/services/T0/abc-Token%20Value?key=abcdefgh-ijkl',
  'no token abc-Token%20Value',
  'no token abc-Token Value',
  'no key abcdefgh-ijkl',
  `no user ${Buffer.from('ann:abc').toString('base64')}`,
  'bad signature v1,c2lnbmF0dXJlIG9m',
  'bad signature c2lnbmF0dXJlIG9m',
])('shows no secret of an answer: %s', async (answer) => {
  const headers = { 'webhook-signature': 'v1,b3RoZXIgb25l v1,c2lnbmF0dXJlIG9m' }
  const message = await failureOf(async () => new Response(answer, { status: 500 }), headers)

  expect(message).toContain('https://hooks.example answered with 500: ')
  expect(message).toContain('(not shown)')
  expect(message).not.toMatch(/Token|ijkl|YW5u|c2lnb/)
})

it('shows no secret of an error of fetch', async () => {
  const cause = Object.assign(new Error(`connect ${secret}`), { code: 'ECONNRESET' })
  const message = await failureOf(() => Promise.reject(new TypeError(`failed: ${secret}`, { cause })))

  expect(message).toBe('https://hooks.example could not be reached (ECONNRESET)')
})

it('ends the body of an accepted answer when the sender is stopped', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const stop = new AbortController()
  const ended = Promise.withResolvers<void>()
  const body = new ReadableStream({ cancel: () => ended.resolve() })
  const fetch: SinkFetch = async () => new Response(body)
  await post(
    endpointOf('url', 'http://127.0.0.1'),
    { body: '', headers: {} },
    { fetch, timeout: 60_000 },
    stop.signal,
  )

  stop.abort()

  await ended.promise
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(0))
})
