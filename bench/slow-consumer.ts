/**
 * Measures the memory of a slow consumer: `npm run slow-consumer -- --events 200000 --json`.
 *
 * A server in a separate process streams run events of 1 KB from two groups. This process merges both streams, drops duplicates, and
 * handles each event in 5 ms. It samples its resident memory (RSS) every 10 ms. `max_mb_over_idle` is the maximum minus that of the
 * idle process after 2,000 events of another group and a collection. V8 has its default settings.
 *
 * Exits with 1 and the reason when that reaches `--limit` MB (default 48), or when not every event was handled.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createClient } from 'rivulet'
import { dedupe, deliver, ofType } from 'rivulet/operators'
import { count, filter, lastValueFrom, map, merge, take } from 'rxjs'

const EVENT_BYTES = 1_000
const HANDLER_MS = 5
const SAMPLE_MS = 10
const WARM_UP_EVENTS = 2_000
const MB = 2 ** 20

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '200000' },
    concurrency: { type: 'string', default: '64' },
    limit: { type: 'string', default: '48' },
    json: { type: 'boolean', default: false },
  },
})
const events = Number(values.events)
const concurrency = Number(values.concurrency)
const limit = Number(values.limit)

const server = fork(fileURLToPath(new URL('slow-consumer/server-process.ts', import.meta.url)), [
  String(events / 2),
  String(EVENT_BYTES),
])
const [{ port }] = await once(server, 'message')
const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'none' })

/** Merges and handles the runs of these groups. */
function pipeline(...groups: readonly string[]) {
  const runs = groups.map((group) => client.taskGroups.runs(group, { include_output: true }))
  return merge(...runs).pipe(
    dedupe(),
    ofType('task_run.state'),
    filter(({ data }) => data.run.status === 'completed'),
    map(({ id, data }) => ({ id, output: data.output })),
    deliver(() => sleep(HANDLER_MS), { concurrency }),
  )
}

await lastValueFrom(pipeline('warm-up').pipe(take(WARM_UP_EVENTS)))
globalThis.gc?.()
const idle = process.memoryUsage.rss()
let max = idle
const sample = () => {
  max = Math.max(max, process.memoryUsage.rss())
}
const sampling = setInterval(sample, SAMPLE_MS)
const began = performance.now()
const handled = await lastValueFrom(pipeline('g1', 'g2').pipe(count()))
const seconds = (performance.now() - began) / 1_000
sample()
clearInterval(sampling)

server.send('what have you noted?')
const [{ heldBack }] = await once(server, 'message')
server.disconnect()

const result = {
  events,
  handled,
  concurrency,
  max_mb_over_idle: rounded((max - idle) / MB),
  seconds: rounded(seconds),
}
if (values.json) {
  process.stdout.write(`${JSON.stringify({ slow_consumer: result })}\n`)
} else {
  const more = { idle_mb: rounded(idle / MB), times_held_back: heldBack }
  for (const [name, value] of Object.entries({ ...result, ...more }))
    process.stdout.write(`${name.padEnd(18)} ${value}\n`)
}

if (handled !== events) fail(`${handled} of ${events} events were handled`)
if (!(result.max_mb_over_idle < limit)) {
  fail(`it took ${result.max_mb_over_idle} MB over the idle process, which is not below ${limit} MB`)
}

function fail(reason: string): void {
  process.stderr.write(`slow-consumer: ${reason}\n`)
  process.exitCode = 1
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}
