// Records a group once, and reads the log twice, by two consumers. The file keeps where each stands.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { createResearchService } from 'rivulet/service'

const service = await createResearchService({ docs: 'node_modules/rxjs' })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
const { taskgroup_id } = await client.taskGroups.create()
const inputs = ['What does RxJS do?', 'How is RxJS installed?'].map((input) => ({ input, processor: 'base' }))
await client.taskGroups.addRuns(taskgroup_id, { inputs })

const file = join(mkdtempSync(join(tmpdir(), 'rivulet-')), 'log.db')
let log = await openLog(sqliteStore(file))
await log.record({ client, taskGroups: [taskgroup_id] }).done
await service.close()

// Everything that follows needs the log alone.
await handle('kinds', ({ data }) => console.log(`${data.run.run_id} ended as ${data.run.status}`))
await log.close()

// Another consumer, as if in another process: it begins at the start, and the first one would go on at the end.
log = await openLog(sqliteStore(file))
await handle('answers', ({ data, revision }) => {
  console.log(data.run.run_id, `revision ${revision}:`, data.output?.content)
})
await log.close()

/**
 * Gives the entries of a consumer to a function, until it has had one for each run.
 *
 * @param {string} name
 * @param {(entry: import('rivulet/log').EntryOf<'task_run.state'>) => void} handler
 */
function handle(name, handler) {
  return new Promise((resolve) => {
    let left = inputs.length
    log.consume(name, { types: ['task_run.state'] }, (entry) => {
      handler(entry)
      if (--left === 0) resolve(undefined)
    })
  })
}
