/** One question, without a group: its progress while it runs, then its answer. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, RunFailedError } from 'rivulet'
import { createResearchService } from 'rivulet/service'

const docs = await mkdtemp(join(tmpdir(), 'rivulet-'))
await writeFile(join(docs, 'acme.md'), '# Acme\n\nAcme was founded in 1949 and makes anvils.\n')
const service = await createResearchService({ docs })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })

try {
  for await (const { type, data } of client.tasks.run('When was Acme founded?')) {
    if (type === 'task_run.state') console.log(data.run.run_id, data.run.status, data.output?.content ?? '')
    if (type === 'task_run.progress_msg') console.log(data.message)
  }
  // Where only the answer matters, it can be awaited. This is another run.
  const { output } = await client.tasks.run('What does Acme make?')
  console.log(output.content)
} catch (error) {
  if (!(error instanceof RunFailedError)) throw error
  console.log(error.run_id, error.message)
}

await service.close()
await rm(docs, { recursive: true })
