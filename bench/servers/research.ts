/** The research service over an empty folder, `research.ts {folder}`: its runs end immediately. */
import { createResearchService } from 'rivulet/service'
import { announce } from '../server.ts'

const [docs = ''] = process.argv.slice(2)
const service = await createResearchService({
  docs,
  apiKey: 'none',
  quotas: false,
  concurrency: 16,
  processor: { run: async () => ({ output: { type: 'text', content: 'done', basis: [] } }) },
})
announce(Number(new URL(await service.listen()).port))
