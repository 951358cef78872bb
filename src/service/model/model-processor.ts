import type { FieldBasis } from '../../protocol/output.ts'
import type { RunInput } from '../../protocol/task.ts'
import { isObject } from '../../protocol/json.ts'
import type { Corpus, Passage } from '../corpus/corpus.ts'
import type { Isolated } from '../isolated/isolated.ts'
import { jsonSchemaOf } from '../processor/schema/output-schema.ts'
import type { Processor, ProcessorResult, ProcessorTask } from '../processor/processor.ts'
import { suggestSchema } from '../processor/schema/suggest.ts'
import { unknownAnswer } from '../processor/answer/unknown.ts'
import { validating } from '../processor/validating.ts'
import { ask, messageOf } from './ask.ts'
import type { ModelServer } from './model-server.ts'
import { type Complaint, type PromptForm, promptOf } from './prompt.ts'
import { checkQuotes, findWords } from './quotes.ts'
import { readReply, type Reply } from './reply.ts'

/** Settings of {@link modelProcessor}. */
export interface ModelProcessorOptions {
  readonly corpus: Corpus
  readonly server: Pick<ModelServer, 'complete'>
  /** Validates the answers. */
  readonly isolated: Pick<Isolated, 'validate'>
  /** Executes a run if the model gives no usable answer. */
  readonly fallback: Processor
}

/** Number of passages that a model reads, by the processor of a run; any other name means `base`. */
const DEFAULT_PASSAGES = 16
const PASSAGES: Readonly<Record<string, number>> = { lite: 8, base: DEFAULT_PASSAGES, core: 32 }
/** The reason of a null in prose. */
const NOT_STATED = 'the passages that the model read state no answer'
/** Maximum length of all passages, in characters. */
const MAX_CHARACTERS = 32_000

/**
 * Executes runs with a model: it writes the answer from the passages of a search, and each of its quotes is checked against
 * them, word for word. Quotes that the passages do not have are dropped. If the model fails, or two of its answers do not satisfy the
 * schema, the fallback executes the run, with a warning.
 */
export function modelProcessor({ corpus, server, isolated, fallback }: ModelProcessorOptions): Processor {
  return {
    async run(task, signal) {
      const form = formOf(task.input)
      const passages = retrieve(corpus, task)
      reportSources(task, passages)
      const promptWith = (complaint: Complaint | undefined) => promptOf(task, form, passages, complaint)
      const read = async (reply: string) => {
        const written: Processor = { run: async () => resultOf(readReply(reply), form, passages, task) }
        return await validating(written, isolated).run(withForm(task, form), signal)
      }
      try {
        return answered(await ask(server, promptWith, read, signal), passages.length)
      } catch (error) {
        signal.throwIfAborted()
        const { output, warnings = [] } = await fallback.run(task, signal)
        const message = `The answer is extracted from the documents, since the model gave none that can be used: ${messageOf(error)}`
        return { output, warnings: [...warnings, { type: 'warning', message }] }
      }
    },
  }
}

/** An answer without a value is in prose if the service has chosen its form. */
function answered(result: ProcessorResult, passages: number): ProcessorResult {
  const { output } = result
  const isUnanswered =
    output.type === 'json' &&
    output.output_schema !== undefined &&
    Object.values(output.content).every((value) => value === null)
  if (!isUnanswered) return result
  const reasoning = `The model read ${passages} passages.`
  const basis: FieldBasis[] = [{ field: 'output', reasoning, citations: [], confidence: 'low' }]
  return { ...result, output: { type: 'text', content: unknownAnswer(NOT_STATED), basis } }
}

/** The task with the schema that its answer must satisfy, which may be a suggested one. */
function withForm(task: ProcessorTask, form: PromptForm): ProcessorTask {
  if (form.type === 'text') return task
  const output_schema = { type: 'json', json_schema: form.schema } as const
  return { ...task, input: { ...task.input, task_spec: { ...task.input.task_spec, output_schema } } }
}

/** The passages for a task, best first. */
function retrieve(corpus: Corpus, { input, context }: ProcessorTask): Passage[] {
  const { processor, source_policy: sourcePolicy } = input
  const question = typeof input.input === 'string' ? input.input : JSON.stringify(input.input)
  const schema = jsonSchemaOf(input.task_spec?.output_schema)
  const properties = schema?.['properties']
  const fields = isObject(properties) ? Object.keys(properties) : []
  const earlier = context.at(-1)?.question
  const found = corpus.passages({
    queries: [question, ...(earlier === undefined ? [] : [earlier])],
    objective: fields.join(' '),
    sourcePolicy,
    limit: PASSAGES[processor ?? 'base'] ?? DEFAULT_PASSAGES,
  })
  let characters = 0
  return found.filter(({ text }) => (characters += text.length) <= MAX_CHARACTERS)
}

function reportSources({ report }: ProcessorTask, passages: readonly Passage[]): void {
  const urls = [...new Set(passages.map(({ url }) => url))]
  report({
    message: { kind: 'search', text: `Found ${passages.length} passages in ${urls.length} documents` },
    sourcesConsidered: urls.length,
    sourcesRead: urls.length,
    sourcesSample: urls.slice(0, 5),
    meter: 20,
  })
}

function formOf({ input, task_spec: spec }: RunInput): PromptForm {
  const asked = spec?.output_schema
  const schema = jsonSchemaOf(asked)
  if (schema !== undefined) return { type: 'json', schema }
  if (typeof asked === 'string') return { type: 'text', description: asked }
  if (asked?.type === 'text') return { type: 'text', description: asked.description ?? '' }
  const suggested = suggestSchema(input)
  return suggested === undefined ? { type: 'text', description: '' } : { type: 'json', schema: suggested }
}

function resultOf(
  reply: Reply,
  form: PromptForm,
  passages: readonly Passage[],
  task: ProcessorTask,
): ProcessorResult {
  const { answer } = reply
  if (form.type === 'text') {
    if (answer !== null && typeof answer !== 'string') throw new Error('"answer" must be a text or null')
    const { basis, dropped } = basisOf(['output'], reply, { output: answer }, passages)
    return {
      output: { type: 'text', content: answer ?? unknownAnswer(NOT_STATED), basis },
      ...warned(dropped),
    }
  }
  if (!isObject(answer)) throw new Error('"answer" must be an object')
  const elements = task.elementBasis === true ? elementFields(answer) : []
  const { basis, dropped } = basisOf([...Object.keys(answer), ...elements], reply, answer, passages)
  const isChosen = jsonSchemaOf(task.input.task_spec?.output_schema) === undefined
  return {
    output: { type: 'json', content: answer, basis, ...(isChosen && { output_schema: form.schema }) },
    ...warned(dropped),
  }
}

/** `founders.0` for each element of each list (§2.3). */
function elementFields(answer: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(answer).flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((_, index) => `${name}.${index}`) : [],
  )
}

/** One entry for each field, with the quotes that were found. */
function basisOf(
  fields: readonly string[],
  { quotes }: Reply,
  answer: Readonly<Record<string, unknown>>,
  passages: readonly Passage[],
): { readonly basis: FieldBasis[]; readonly dropped: number } {
  const checked = fields.map((field) => {
    const own = quotes.filter((quote) => (quote.field ?? fields[0]) === field)
    return { field, ...checkQuotes(own, passages) }
  })
  const basis = checked.map(({ field, citations, dropped }): FieldBasis => {
    const excerpts = citations.flatMap((citation) => citation.excerpts ?? [])
    const value = valueAt(answer, field)
    const isQuoted = value !== null && value !== undefined && excerpts.some((text) => states(text, value))
    const written = `The model read ${passages.length} passages.`
    const quoted = `${excerpts.length} of its ${excerpts.length + dropped} quotes stand in them word for word.`
    return {
      field,
      reasoning: isQuoted ? `${written} ${quoted} The value stands in a quote.` : `${written} ${quoted}`,
      citations,
      confidence: excerpts.length === 0 ? 'low' : isQuoted ? 'high' : 'medium',
    }
  })
  return { basis, dropped: checked.reduce((sum, { dropped }) => sum + dropped, 0) }
}

/** The value of a field, or of the element that a path such as `founders.0` names. */
function valueAt(answer: Readonly<Record<string, unknown>>, field: string): unknown {
  if (Object.hasOwn(answer, field)) return answer[field]
  const [, name = '', index = ''] = /^(.*)\.(\d+)$/.exec(field) ?? []
  const list = answer[name]
  return Array.isArray(list) ? list[Number(index)] : undefined
}

function states(excerpt: string, value: unknown): boolean {
  // The word "true" in a quote says nothing about the field.
  return (
    (typeof value === 'string' || typeof value === 'number') &&
    findWords(excerpt, String(value)) !== undefined
  )
}

function warned(dropped: number): Pick<ProcessorResult, 'warnings'> {
  if (dropped === 0) return {}
  const what = dropped === 1 ? '1 quote of the model was' : `${dropped} quotes of the model were`
  return { warnings: [{ type: 'warning', message: `${what} dropped: no passage has these words` }] }
}
