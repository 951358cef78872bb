import type { MeasuredService } from '../service.ts'
import type { Question } from './question.ts'

/** One cited passage. */
export interface CitedExcerpt {
  readonly url: string
  readonly excerpt: string
}

/** An answer of the service to a question. */
export interface Given {
  /** The text of an answer in prose; the object of a JSON answer; undefined if the run failed. */
  readonly content: unknown
  /** Why the run failed. */
  readonly failure?: string
  /** Of the field, or of `output`. */
  readonly confidence: (field: string) => string | undefined
  /** The number of citations of the field, or of `output`. */
  readonly citations: (field: string) => number
  readonly excerpts: readonly CitedExcerpt[]
}

interface Basis {
  readonly field: string
  readonly confidence?: string | null
  readonly citations?: readonly { readonly url: string; readonly excerpts?: readonly string[] | null }[]
}

/** Asks as a user would: `words` is a chat completion, `text` and `json` are task runs. */
export async function ask(service: MeasuredService, item: Question): Promise<Given> {
  return item.form === 'words' ? chat(service, item) : run(service, item)
}

async function chat(service: MeasuredService, { question, processor }: Question): Promise<Given> {
  const messages = [{ role: 'user', content: question }]
  const { status, body } = await service.post('/v1beta/chat/completions', {
    model: processor ?? 'base',
    messages,
  })
  const { choices, basis }: { choices?: readonly { message: { content: unknown } }[]; basis?: unknown } =
    Object(body)
  if (status !== 200) return given(undefined, [], messageOf(body))
  return given(choices?.[0]?.message.content, basis)
}

async function run(service: MeasuredService, item: Question): Promise<Given> {
  const output_schema = item.form === 'json' ? { type: 'json', json_schema: item.schema } : { type: 'text' }
  const created = await service.post('/v1/tasks/runs', {
    input: item.question,
    processor: item.processor ?? 'base',
    task_spec: { output_schema },
  })
  const { run_id }: { run_id?: string } = Object(created.body)
  // A request that the service refuses is an error of the item.
  if (run_id === undefined) throw new Error(`${item.id}: ${created.status}: ${messageOf(created.body)}`)
  const { status, body } = await service.get(`/v1/tasks/runs/${run_id}/result`)
  if (status !== 200) {
    const { body: failed } = await service.get(`/v1/tasks/runs/${run_id}`)
    return given(undefined, [], messageOf(failed))
  }
  const { output }: { output?: { readonly content: unknown; readonly basis?: unknown } } = Object(body)
  return given(output?.content, output?.basis)
}

function given(content: unknown, basis: unknown, failure?: string): Given {
  const entries: readonly Basis[] = Array.isArray(basis) ? basis : []
  const entryOf = (field: string) => entries.find((entry) => entry.field === field)
  return {
    content,
    ...(failure !== undefined && { failure }),
    confidence: (field) => entryOf(field)?.confidence ?? undefined,
    citations: (field) => entryOf(field)?.citations?.length ?? 0,
    excerpts: entries
      .flatMap(({ citations }) => citations ?? [])
      .flatMap(({ url, excerpts }) => (excerpts ?? []).map((excerpt) => ({ url, excerpt }))),
  }
}

function messageOf(body: unknown): string {
  const { error }: { error?: { readonly message?: unknown } | null } = Object(body)
  return typeof error?.message === 'string' ? error.message : JSON.stringify(body)
}
