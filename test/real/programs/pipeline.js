// @ts-nocheck -- It runs as it stands, where the types of this repository are not.
// A user's pipeline, the same on every runtime. It reports what the test looks at.
import { createClient } from 'rivulet'
import { dedupe, deliver, iterate, ofType } from 'rivulet/operators'
import { map, take } from 'rxjs'

const INPUTS = ['rivers', 'brooks', 'lakes', 'ponds', 'seas'].map((input) => ({ input, processor: 'base' }))

/** Searches, reads a group's stream, which the service cuts, and has runs executed. */
export async function pipeline(settings) {
  const client = createClient(settings)
  const reconnects = []
  client.diagnostics.subscribe(({ kind }) => kind === 'reconnect' && reconnects.push(kind))

  const { results } = await client.search({ search_queries: ['rivers'] })
  const { taskgroup_id } = await client.taskGroups.create()
  await client.taskGroups.addRuns(taskgroup_id, { inputs: INPUTS })
  const answers = []
  await client.taskGroups
    .runs(taskgroup_id, { include_output: true })
    .pipe(
      dedupe(),
      ofType('task_run.state'),
      deliver(async ({ data }) => void answers.push(data.output.content), { concurrency: 2 }),
    )
    .forEach(() => {})

  const { taskgroup_id: other } = await client.taskGroups.create()
  const executed = client.taskGroups.execute(other, INPUTS.slice(0, 2))
  const contents = []
  for await (const content of iterate(
    executed.pipe(
      map(({ output }) => output.content),
      take(2),
    ),
  )) {
    contents.push(content)
  }
  const refused = await client.taskGroups
    .get('tgrp_unknown')
    .forEach(() => {})
    .catch((error) => error.name)

  return {
    found: results.length > 0,
    answers: answers.toSorted(),
    reconnected: reconnects.length > 0,
    executed: contents.toSorted(),
    refused,
  }
}
