// Records a group once, and reads the log twice: a consumer per run, and one that takes batches. The file keeps where each stands.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { deliver } from 'rivulet/operators'
import { createResearchService } from 'rivulet/service'
import { bufferCount, first, lastValueFrom } from 'rxjs'

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
const batches = log.consume('batches', { types: ['task_run.state'] }).pipe(
  bufferCount(2),
  deliver((entries) => console.log(`a batch of ${entries.length}`)),
  first(),
)
await lastValueFrom(batches)
await log.close()

log = await openLog(sqliteStore(file))
await new Promise((resolve) => {
  let answers = 0
  log.consume('answers', { types: ['task_run.state'] }, ({ data, revision }) => {
    console.log(data.run.run_id, `revision ${revision}:`, data.output?.content)
    if (++answers === inputs.length) resolve(undefined)
  })
})
await log.close()
