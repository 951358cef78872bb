/**
 * Answers that follow a schema: it is sent with each question, each output is checked, and `output.content` has its type. A schema of
 * zod 4.2 or later can be passed directly. This one is written by hand, so that the program needs no other package.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'rivulet'
import { createResearchService } from 'rivulet/service'

/** @type {import('rivulet').AnswerSchema<{ founded: number }>} */
const Company = {
  jsonSchema: {
    type: 'object',
    // The service may answer null, so that a year that the documents lack is no failed run.
    properties: {
      founded: { type: ['integer', 'null'], description: 'The year in which the company was founded' },
    },
    required: ['founded'],
  },
  schema: {
    '~standard': {
      version: 1,
      vendor: 'example',
      validate(value) {
        const founded = Object(value).founded
        if (Number.isInteger(founded)) return { value: { founded } }
        return { issues: [{ message: 'a year is missing', path: ['founded'] }] }
      },
    },
  },
}

const docs = await mkdtemp(join(tmpdir(), 'rivulet-'))
await writeFile(join(docs, 'acme.md'), '# Acme\n\nAcme was founded in 1949 and makes anvils.\n')
await writeFile(
  join(docs, 'initech.md'),
  '# Initech\n\nInitech sells software; who founded it is not known.\n',
)
const service = await createResearchService({ docs })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })

const { taskgroup_id } = await client.taskGroups.create()
const inputs = ['Acme', 'Initech'].map((name) => ({ input: `When was ${name} founded?`, processor: 'base' }))
const answers = client.taskGroups.execute(taskgroup_id, inputs, { schema: Company })
// An answer that does not match is emitted with its misfit. After the last answer, the ExecutionError lists it.
try {
  for await (const { input, run, output, misfit } of answers) {
    // `founded` is a number for the compiler too.
    if (output !== null)
      console.log(input.input, `${output.content.founded}, the jubilee is in ${output.content.founded + 100}`)
    else console.log(input.input, misfit?.message ?? run.error?.message)
  }
} catch (error) {
  console.log(String(error))
}

await service.close()
await rm(docs, { recursive: true })
