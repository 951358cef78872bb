import { setImmediate } from 'node:timers/promises'
import type { Warning } from '../../protocol/problem.ts'
import type { RunInput, TaskSpec } from '../../protocol/task.ts'
import type { Corpus } from '../corpus/corpus.ts'
import type { Isolated } from '../isolated/isolated.ts'
import { extractFields } from './answer/fields.ts'
import { jsonSchemaOf } from './schema/output-schema.ts'
import { createPatternMatcher } from './schema/pattern.ts'
import { corpusPlace } from './passages/place.ts'
import type { Processor, ProcessorResult, ProcessorTask } from './processor.ts'
import { extractProse } from './answer/prose.ts'
import { Reporter } from './answer/reporter.ts'
import { continued, readSubject } from './question/subject.ts'
import { suggestSchema } from './schema/suggest.ts'

/** The effort of each processor: passages that are read for a field, and sentences of a prose answer. */
const EFFORTS = {
  lite: { depth: 12, sentences: 1 },
  base: { depth: 32, sentences: 2 },
  core: { depth: 96, sentences: 4 },
} as const

/**
 * Executes runs by extraction: searches the corpus for each output field, and answers with cited, verbatim text. It invents
 * nothing: a field that it does not find is null, empty or omitted, as its schema allows, with low confidence and no
 * citation; if the schema allows none of these, the run fails. It is deterministic.
 *
 * The input names the subject of the run. Documents with that title, file or folder name are read first; an answer from
 * another document must contain the name. The processors `lite`, `base` and `core` differ in how much they read; any other
 * name means `base`.
 *
 * 1. The subject: names in the input (`subject.ts`), or a thing that it describes (`described.ts`).
 * 2. The question: an attribute, a form, versions and weighted words (`asked.ts`). Each field of a schema is one of its own.
 * 3. The evidence: attributes from where they are stated (`facts.ts`), changes from the changelog (`changes.ts`), all else from statements,
 *    ranked by a weighted sum of features (`statements.ts`, `statement-model.ts`).
 * 4. A statement that is too unlikely, or says too little of the question, is no answer (`evidence.ts`).
 * 5. The answer is quoted (`prose.ts`), or its value is taken in the type and the format of the field (`answer.ts`).
 * 6. The confidence follows from the likelihood, or from where an attribute is stated (`confidence.ts`).
 */
export function extractiveProcessor(corpus: Corpus, isolated: Isolated): Processor {
  return {
    async run(task: ProcessorTask, signal: AbortSignal): Promise<ProcessorResult> {
      signal.throwIfAborted()
      const { input, context, report, elementBasis = false } = task
      const { depth, sentences } = effortOf(input)
      const place = corpusPlace(corpus, input.source_policy)
      const subject = continued(place, readSubject(place, input.input), context)
      const search = { place, subject, depth }
      const reporter = new Reporter(report, subject)
      const patterns = createPatternMatcher(isolated)
      const extract = (schema: Readonly<Record<string, unknown>>) =>
        extractFields({ search, schema, isolated, elementBasis, patterns, reporter, signal })

      const asked = input.task_spec?.output_schema
      const schema = jsonSchemaOf(asked)
      if (schema !== undefined) return withWarnings(await extract(schema), ignoredInputs(input))
      const suggested = isAuto(asked) ? suggestSchema(input.input) : undefined
      if (suggested !== undefined) {
        const result = await extract(suggested)
        if (isAnswered(result)) return withWarnings(withSchema(result, suggested), ignoredInputs(input))
      }
      // Yields to the event loop between two runs.
      await setImmediate()
      signal.throwIfAborted()
      const prose = extractProse(search, descriptionOf(asked), sentences, reporter)
      return withWarnings(prose, ignoredInputs(input))
    },
  }
}

function withWarnings({ output, warnings = [] }: ProcessorResult, more: readonly Warning[]): ProcessorResult {
  const all = [...warnings, ...more]
  return { output, ...(all.length > 0 && { warnings: all }) }
}

/** A warning for each parameter that extraction ignores. */
function ignoredInputs(input: RunInput): Warning[] {
  const given: readonly [parameter: string, value: unknown][] = [
    ['advanced_settings.location', input.advanced_settings?.location],
  ]
  return given
    .filter(([, value]) => value !== undefined)
    .map(([parameter]) => ({
      type: 'input_validation_warning',
      message: `${parameter} is ignored: the built-in processor reads the documents only`,
      detail: { parameter },
    }))
}

/** Whether the service chooses the form of the answer. */
function isAuto(schema: TaskSpec['output_schema']): boolean {
  return schema === undefined || (typeof schema === 'object' && schema.type === 'auto')
}

function isAnswered({ output }: ProcessorResult): boolean {
  return output.type === 'json' && Object.values(output.content).some(hasValue)
}

function hasValue(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== null
}

function withSchema(result: ProcessorResult, schema: Readonly<Record<string, unknown>>): ProcessorResult {
  const { output } = result
  return output.type === 'json' ? { ...result, output: { ...output, output_schema: schema } } : result
}

function effortOf({ processor }: RunInput): (typeof EFFORTS)[keyof typeof EFFORTS] {
  return processor === 'lite' || processor === 'core' ? EFFORTS[processor] : EFFORTS.base
}

function descriptionOf(schema: TaskSpec['output_schema']): string {
  if (typeof schema === 'string') return schema
  return schema?.type === 'text' ? (schema.description ?? '') : ''
}
