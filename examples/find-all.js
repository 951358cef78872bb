/** A list of things that meet a condition: each match as it is found. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'rivulet'
import { createResearchService } from 'rivulet/service'

const COMPANIES = {
  Acme: 'Acme is a company in Vienna. It makes anvils. Acme was founded in 1949.',
  Globex: 'Globex is a company in Oslo. It makes anvils and rockets. Globex was founded in 1989.',
  Initech: 'Initech is a company in Austin. It sells software. Initech was founded in 1994.',
}

const docs = await mkdtemp(join(tmpdir(), 'rivulet-'))
for (const [name, text] of Object.entries(COMPANIES)) {
  await writeFile(join(docs, `${name}.md`), `# ${name}\n\n${text}\n`)
}
const service = await createResearchService({ docs })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })

const run = client.findAll.run({
  objective: 'Companies that make anvils',
  entity_type: 'companies',
  match_conditions: [{ name: 'makes_anvils', description: 'The company makes anvils.' }],
  generator: 'base',
  match_limit: 10,
})
for await (const { type, data } of run) {
  if (type === 'findall.candidate.matched') console.log('match:', data.data.name, data.data.url)
  if (type === 'findall.status' && !data.data.status.is_active) console.log('over:', data.data.status.status)
}

await service.close()
await rm(docs, { recursive: true })
