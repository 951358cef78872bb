import { setImmediate } from 'node:timers/promises'
import type { Warning } from '../../protocol/problem.ts'
import type { RunInput, TaskSpec } from '../../protocol/task.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { isMereAddress } from './answer.ts'
import { entry } from './basis.ts'
import { type EvidenceSearch, findEvidence } from './evidence.ts'
import { extractFields } from './fields.ts'
import { jsonSchemaOf } from './json-schema.ts'
import type { Evidence } from './judge.ts'
import type { Processor, RunResult, RunTask } from './processor.ts'
import { Reporter } from './reporter.ts'
import { continued, readSubject } from './subject.ts'
import { suggestSchema } from './suggest.ts'

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
 */
export function extractiveProcessor(corpus: Corpus): Processor {
  return {
    async run(task: RunTask, signal: AbortSignal): Promise<RunResult> {
      signal.throwIfAborted()
      const { input, context, report, elementBasis = false } = task
      const { source_policy: sourcePolicy } = input
      const { depth, sentences } = effortOf(input)
      const subject = continued(corpus, readSubject(corpus, input.input, sourcePolicy), context, sourcePolicy)
      const search = { corpus, subject, sourcePolicy, depth }
      const reporter = new Reporter(report, subject)
      const extract = (schema: Readonly<Record<string, unknown>>) =>
        extractFields({ search, schema, elementBasis, reporter, signal })

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

function withWarnings({ output, warnings = [] }: RunResult, more: readonly Warning[]): RunResult {
  const all = [...warnings, ...more]
  return { output, ...(all.length > 0 && { warnings: all }) }
}

/** A warning for each parameter that extraction ignores. */
function ignoredInputs(input: RunInput): Warning[] {
  const given: readonly [parameter: string, value: unknown][] = [
    ['memory_scope_key', input.memory_scope_key],
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

function isAnswered({ output }: RunResult): boolean {
  return output.type === 'json' && Object.values(output.content).some((value) => value !== null)
}

function withSchema(result: RunResult, schema: Readonly<Record<string, unknown>>): RunResult {
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

function extractProse(
  search: EvidenceSearch,
  description: string,
  sentences: number,
  reporter: Reporter,
): RunResult {
  reporter.plan(1, [])
  const found = findEvidence(search, `${search.subject.text} ${description}`)
  const statements = found.evidence.filter(({ unit }) => !isMereAddress(unit, found.question))
  const evidence = distinct(statements).slice(0, sentences)
  const answer = evidence.length === 0 ? undefined : { value: '', evidence }
  reporter.searched('output', found, answer && { ...answer, value: evidence[0]?.unit.text })
  const basis = [entry('output', { found, answer })]
  return { output: { type: 'text', content: evidence.map(({ unit }) => unit.text).join('\n\n'), basis } }
}

/** Evidence with distinct text that is nearly as good as the best. */
function distinct(evidence: readonly Evidence[]): Evidence[] {
  const byText = new Map<string, Evidence>()
  for (const candidate of evidence) {
    if (candidate.score < (evidence[0]?.score ?? 0) * 0.6) break
    if (!byText.has(candidate.unit.text)) byText.set(candidate.unit.text, candidate)
  }
  return [...byText.values()]
}
