// @ts-nocheck -- It also uses what the types do not declare.
// A user's program in plain JavaScript, run with the installed package. Prints its results for the test.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as rivulet from 'rivulet'
import * as logs from 'rivulet/log'
import * as sqlite from 'rivulet/log/sqlite'
import * as operators from 'rivulet/operators'
import * as service from 'rivulet/service'
import * as webhooks from 'rivulet/webhooks'
import { firstValueFrom, lastValueFrom, take } from 'rxjs'

const folder = await mkdtemp(join(tmpdir(), 'rivulet-program-'))
const processor = {
  run: async ({ input }) => ({ output: { type: 'text', content: `about ${input.input}`, basis: [] } }),
}
const research = await service.createResearchService({ docs: folder, processor })
const client = rivulet.createClient({
  baseUrl: await research.listen(),
  apiKey: research.apiKey,
  retries: 0,
})
try {
  const report = { handled: await handled(), gate: await gateOfLoop(), errors: await errors() }
  process.stdout.write(JSON.stringify(report))
} finally {
  await research.close()
  await rm(folder, { recursive: true })
}

/** A pipeline of all entries except webhooks: the outputs of a group's runs. */
async function handled() {
  const { taskgroup_id: id } = await firstValueFrom(client.taskGroups.create())
  const inputs = ['rivers', 'brooks'].map((input) => ({ input, processor: 'base' }))
  await lastValueFrom(client.taskGroups.addRuns(id, { inputs }))
  const log = await logs.openLog(sqlite.sqliteStore(join(folder, 'log.db')))
  const found = []
  const recording = log.record({ client, taskGroups: [id] })
  await log
    .consume('runs')
    .pipe(
      operators.ofType('task_run.state'),
      operators.deliver((entry) => void found.push(entry.data.output.content)),
      take(inputs.length),
    )
    .forEach(() => {})
  await recording.done
  await log.close()
  return found.toSorted()
}

/** Whether `gateOf` of one entry finds the gate of a loop over a source of another entry. */
async function gateOfLoop() {
  const Source = client.monitors.events('m').constructor
  const source = new Source((subscriber) => {
    subscriber.next(operators.gateOf(subscriber) instanceof operators.Gate)
  })
  for await (const found of source) return found
}

/** For each entry, whether its error is the class of `rivulet`. */
async function errors() {
  const thrownBy = async (call) => {
    try {
      await call()
    } catch (error) {
      return error
    }
  }
  await research.close()
  const { ArgumentError, ConnectionError } = rivulet
  return {
    operators: (await thrownBy(() => operators.dedupe({ capacity: -1 }))) instanceof ArgumentError,
    webhooks:
      (await thrownBy(() => webhooks.createWebhookReceiver({ secrets: '' }))) instanceof ArgumentError,
    service: (await thrownBy(() => service.createResearchService({ docs: 1 }))) instanceof ArgumentError,
    sqlite: (await thrownBy(() => logs.openLog(sqlite.sqliteStore(folder)))) instanceof logs.LogError,
    exchange: (await thrownBy(() => firstValueFrom(client.get('/v1/any')))) instanceof ConnectionError,
  }
}
