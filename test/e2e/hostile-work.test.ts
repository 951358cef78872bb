import { ApiError } from 'rivulet'
import { expect, it } from 'vitest'
import { serve } from '../support/serve.ts'
import { research } from './research.ts'

/** The longest turn of the event loop that the service may have, in ms. The work below took it a second or more at a time. */
const MAX_TURN = 900

/**
 * Measures the turns of this thread's event loop. Returns a function that stops, and returns the longest one in ms: how long it
 * used a processor, since a busy machine may not give it one.
 */
function measureTurns(): () => number {
  const used = () => {
    if (typeof process.threadCpuUsage !== 'function') return performance.now()
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1_000
  }
  let longest = 0
  let before = used()
  const timer = setInterval(() => {
    const now = used()
    longest = Math.max(longest, now - before)
    before = now
  }, 10)
  return () => {
    clearInterval(timer)
    return longest
  }
}

const doubled = Object.fromEntries(
  Array.from({ length: 100 }, (_, index) => {
    const next = { $ref: `#/$defs/d${index + 1}` }
    return [`d${index}`, { allOf: [next, next] }]
  }),
)
const endless = { $ref: '#/$defs/d0', $defs: { ...doubled, d100: {} } }
/** Fifteen kilobytes whose conversion takes quadratic time. */
const page = `${'<blockquote>'.repeat(390)}${'a<br>'.repeat(2_000)}`
const asking = (json_schema: Record<string, unknown>) => ({
  input: 'rxjs',
  processor: 'base',
  task_spec: { output_schema: { type: 'json' as const, json_schema } },
})
const files = { 'rxjs/README.md': `# rxjs\n\nThe name is ${'a'.repeat(60)}!\n` }

it('serves requests and streams while schemas, patterns and pages take endless time', async () => {
  const site = await serve((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(page),
  )
  const { client } = await research({ files, allowPrivateAddresses: true, processor: undefined })
  const backtracking = (kept: string) =>
    asking({ properties: { name: { type: 'string', pattern: `(a|a)*${kept}$` } } })
  const longestTurn = measureTurns()

  const over = new AbortController()
  const hostile = Promise.allSettled([
    client.tasks.run(backtracking('c')),
    client.tasks.run(backtracking('d')),
    client.tasks.create(asking(endless)),
    client.tasks.create(asking({ title: 'again', ...endless })),
    client.extract({ urls: [site] }),
  ]).finally(() => over.abort())
  let answered = 0
  while (!over.signal.aborted) {
    await client.tasks.run({ input: 'rxjs', processor: 'base' })
    answered += 1
  }
  const outcomes = await hostile

  expect(outcomes.map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'rejected',
    'fulfilled',
  ])
  expect(answered).toBeGreaterThan(5)
  expect(longestTurn()).toBeLessThan(MAX_TURN)
}, 120_000)

it('closes without waiting for the schemas that are to be checked: their requests get a 503', async () => {
  const { client, service } = await research({ client: { retries: 0 } })
  const answers = Array.from({ length: 8 }, async (_, index) => {
    const created = client.tasks.create(asking({ title: String(index), ...endless }))
    return created.then(
      () => 201,
      (error: unknown) => (error instanceof ApiError ? error.status : undefined),
    )
  })
  // All requests have arrived when the first schema has taken its time.
  expect(await Promise.race(answers)).toBe(422)
  await service.close()

  expect((await Promise.all(answers)).filter((status) => status === 503).length).toBeGreaterThan(4)
}, 120_000)
