/** A project for browsers and edge runtimes: without Node's types. Compiled with each supported TypeScript. */
import { ConnectionError, createClient } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import { connect } from 'rivulet/live'
import type { ViewShape } from 'rivulet/live'
import { dedupe, deliver, ofType } from 'rivulet/operators'
import { useView } from 'rivulet/react'
import { inMemory } from 'rivulet/streams'
import { createWebhookReceiver, httpSink, memoryInbox, nodeListener } from 'rivulet/webhooks'

const receiver = createWebhookReceiver({ secrets: 'secret', inbox: memoryInbox() })
const client = createClient({ baseUrl: '/api', apiKey: null, fetch: (input, init) => fetch(input, init) })
const changes = client
  .watch({ monitors: ['m'], webhooks: receiver })
  .pipe(dedupe(), ofType('monitor.event_stream'))

export const following = changes.subscribe({
  next: (event) => document.body.append(event.id, event.source),
  error: (error: unknown) => error instanceof ConnectionError && document.body.append(error.message),
})

export const counted = client.watch({ monitors: ['m'] }).pipe(
  inMemory('count', {
    key: (event) => event.source,
    init: () => 0,
    event: (state, _event, context) => context.set(state + 1),
  }),
)

export async function record(): Promise<readonly string[]> {
  const log = await openLog(memoryStore())
  const handled: string[] = []
  const recording = log.record({ client, monitors: ['m'] })
  await log
    .consume('pages')
    .pipe(deliver((event: ResearchEvent) => void handled.push(event.type)))
    .forEach(() => {})
  log.consume('billing', {}, httpSink({ url: 'https://billing.example', secrets: 'secret' }))
  await recording.done
  await log.close()
  return handled
}

export const handle: (request: Request) => Promise<Response> = receiver.handle
export const listener = nodeListener(receiver)

const live = connect<{ runs: ViewShape<{ n: number }, 'group'> }>({ url: '/live', getToken: () => '' })
export const Rows = (): number => useView(live.view('runs', { group: 'a' })).rows.size
// @ts-expect-error It has no such view.
live.view('groups')
