import { createClient } from 'rivulet'
import { ofType } from 'rivulet/operators'
import { createResearchService } from 'rivulet/service'
import { firstValueFrom, lastValueFrom, tap } from 'rxjs'

const service = await createResearchService({ docs: 'node_modules/rxjs' })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
const { taskgroup_id } = await firstValueFrom(client.taskGroups.create())
const inputs = ['What does RxJS do?', 'How is RxJS installed?'].map((input) => ({ input, processor: 'base' }))
await lastValueFrom(client.taskGroups.addRuns(taskgroup_id, { inputs }))
const answers = client.watch({ taskGroups: [taskgroup_id] }).pipe(ofType('task_run.state'))
await lastValueFrom(answers.pipe(tap(({ data }) => console.log(data.run.run_id, data.output?.content))))
await service.close()
