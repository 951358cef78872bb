import type { Answer } from './answer.ts'
import type { Findings } from '../evidence/evidence.ts'
import type { ProcessorTask } from '../processor.ts'
import type { Subject } from '../question/subject.ts'
import { cutText } from '../../../protocol/cut-text.ts'

/** Maximum length of a value in a message, in characters. */
const MAX_VALUE = 200
/** Number of sources in the sample. */
const SAMPLE = 5

/** Reports what an extraction does: its plan, each search and its result, and the documents that it has read. */
export class Reporter {
  readonly #report: ProcessorTask['report']
  readonly #subject: Subject
  readonly #sources = new Set<string>()
  #fields = 1
  #done = 0

  constructor(report: ProcessorTask['report'], subject: Subject) {
    this.#report = report
    this.#subject = subject
  }

  /** Reports the number of searches to come, and the names that they are for. */
  plan(fields: number, names: readonly string[]): void {
    this.#fields = Math.max(1, fields)
    const { names: subjects } = this.#subject
    const where = subjects.length === 0 ? 'all documents' : `the documents named ${subjects.join(', ')}`
    const text = `Search ${where} for ${names.join(', ') || 'an answer'}`
    this.#report({ message: { kind: 'plan', text }, meter: 0 })
  }

  /** Reports a search and its result. */
  searched(field: string, { sources, query, about }: Findings, answer: Answer | undefined): void {
    for (const url of sources) this.#sources.add(url)
    this.#done += 1
    const where = about === undefined ? 'all documents' : `the documents named ${about}`
    this.#report({ message: { kind: 'search', text: `${field}: searched ${where} for “${query}”` } })
    const [best] = answer?.evidence ?? []
    const value = cutText(JSON.stringify(answer?.value) ?? '', MAX_VALUE)
    const result = best === undefined ? 'nothing found' : `found ${value} in ${best.passage.url}`
    this.#report({
      message: { kind: 'result', text: `${field}: ${result}` },
      sourcesConsidered: this.#sources.size,
      sourcesRead: this.#sources.size,
      sourcesSample: [...this.#sources].slice(0, SAMPLE),
      // The rest is for the end of the run.
      meter: Math.min(99, Math.round((100 * this.#done) / this.#fields)),
    })
  }
}
