import { createResearchService } from '../../../src/service/index.ts'

/** A service over the documents and the data file of its arguments. Sends its URL, and is killed by the test. */
const [folder = '', data = '', apiKey = ''] = process.argv.slice(2)
const service = await createResearchService({
  docs: [{ folder, site: 'https://docs.example' }],
  data,
  apiKey,
  webhookSecret: 'secret',
})
process.send?.(await service.listen())
