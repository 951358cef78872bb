/**
 * What a slow consumer costs in memory: `npm run slow-consumer -- --events 200000 --json`.
 *
 * A server in its own process streams run events of 1 KB from two groups, as fast as they are taken. This process merges
 * both, and takes 5 ms for each event. Its resident memory is sampled from the first event to the last.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createClient } from 'rivulet'
import { dedupe, deliver, ofType } from 'rivulet/operators'
import { lastValueFrom, merge, tap } from 'rxjs'

const EVENT_BYTES = 1_000
const HANDLER_MS = 5
const SAMPLE_MS = 10

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '200000' },
    concurrency: { type: 'string', default: '64' },
    json: { type: 'boolean', default: false },
  },
})
const events = Number(values.events)
const concurrency = Number(values.concurrency)

const server = fork(fileURLToPath(new URL('slow-consumer/server-process.ts', import.meta.url)), [
  String(events / 2),
  String(EVENT_BYTES),
])
const [{ port }] = await once(server, 'message')
const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey: 'none' })

globalThis.gc?.()
const idle = process.memoryUsage.rss()
let peak = idle
const sample = () => {
  peak = Math.max(peak, process.memoryUsage.rss())
}
const sampling = setInterval(sample, SAMPLE_MS)

let handled = 0
const began = performance.now()
const runs = ['g1', 'g2'].map((group) => client.taskGroups.runs(group, { include_output: true }))
await lastValueFrom(
  merge(...runs).pipe(
    dedupe(),
    ofType('task_run.state'),
    deliver(() => sleep(HANDLER_MS), { concurrency }),
    tap(() => {
      handled += 1
    }),
  ),
)
sample()
clearInterval(sampling)
const seconds = (performance.now() - began) / 1_000
server.send('stop')
const [noted] = await once(server, 'message')
process.stdout.write(
  JSON.stringify({
    idle: idle / 2 ** 20,
    peak: peak / 2 ** 20,
    handled,
    seconds,
    ...noted,
    mem: process.memoryUsage(),
  }) + '\n',
)
