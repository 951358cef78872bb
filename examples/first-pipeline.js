import { createClient } from 'rivulet'
import { ofType } from 'rivulet/operators'
import { createResearchService } from 'rivulet/service'

const service = await createResearchService({ docs: 'node_modules/rxjs' })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
const { taskgroup_id } = await client.taskGroups.create()
const inputs = ['What does RxJS do?', 'How is RxJS installed?'].map((input) => ({ input, processor: 'base' }))
await client.taskGroups.addRuns(taskgroup_id, { inputs })
const answers = client.watch({ taskGroups: [taskgroup_id] }).pipe(ofType('task_run.state'))
await answers.forEach(({ data }) => console.log(data.run.run_id, data.output?.content))
await service.close()
