/** Records a group, a monitor and the webhooks of the inbox. */
import { createClient } from 'rivulet'
import { runRole } from './role.ts'

await runRole((log, { baseUrl, apiKey, group, monitor, includeOutput }) => {
  const client = createClient({
    baseUrl,
    apiKey,
    initialDelay: 20,
    maxDelay: 500,
    timeouts: { silence: 1_000 },
  })
  const recording = log.record({
    client,
    taskGroups: [{ id: group, include_output: includeOutput }],
    monitors: [{ id: monitor, pollInterval: 100 }],
    webhooks: true,
    tick: 100,
  })
  // A source that failed is for the supervisor: with the next process it is tried again.
  const failure = Promise.withResolvers<never>()
  const watching = log.consume(
    'supervisor',
    { types: ['source.failed'], startAt: 'end' },
    ({ source, data }) => failure.reject(new Error(`${source} failed: ${data.error.message}`)),
  )
  return {
    failed: Promise.race([recording.done, watching.done, failure.promise]),
    stop: () => Promise.all([recording.stop(), watching.stop()]),
  }
})
