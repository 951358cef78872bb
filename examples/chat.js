/** A conversation: the text of an answer while it grows, its sources, and a question that continues it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'rivulet'
import { createResearchService } from 'rivulet/service'

const docs = await mkdtemp(join(tmpdir(), 'rivulet-'))
await writeFile(join(docs, 'acme.md'), '# Acme\n\nAcme makes anvils. Acme was founded in 1949.\n')
const service = await createResearchService({ docs })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })

// Each part of the answer comes with the text so far. A stream that is cut errors: a short answer never looks whole.
const first = client.responses.stream({ input: 'What does Acme make?', model: 'base' })
let id
for await (const { event, text } of first) {
  if (event.type === 'response.output_text.delta') console.log(text)
  if (event.type === 'response.completed') id = event.response.id
}

// Where only the whole answer matters, it can be awaited.
const next = await client.responses.create({
  input: 'When was it founded?',
  model: 'base',
  previous_response_id: id,
})
for (const item of next.output) {
  for (const { text, annotations } of item.content) console.log(text, annotations)
}

await service.close()
await rm(docs, { recursive: true })
