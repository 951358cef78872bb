import type { DatabaseSync } from 'node:sqlite'
import { isObject } from '../../protocol/json.ts'
import type { ValidationIssue } from '../../protocol/problem.ts'
import type { TaskSpec } from '../../protocol/task.ts'
import { transaction } from '../database.ts'
import { problem } from '../http/problem.ts'
import { latestTurns, type Interactions, type Turn } from '../interactions/interactions.ts'
import type { Processor, ProcessorTask } from '../processor/processor.ts'
import type { ProcessorSlots } from '../processor/slots.ts'
import { newRun, type SchemaChecks } from '../tasks/run-request.ts'
import type { PreviousInteractions } from '../tasks/tasks.ts'
import { type AnswerContent, type AnswerForm, contentOf } from './content.ts'
import type { Conversation } from './question.ts'

/** Maximum number of requests that wait for a free slot of the processor. */
const MAX_WAITING = 256
/** The `Retry-After` of a 503, in s. */
const RETRY_AFTER = 5
/** Maximum number of chats and responses that are kept. The oldest are dropped first, with their turns. */
const MAX_KEPT = 1_000

/** Settings of {@link Answerer}. */
export interface AnswererOptions {
  readonly database: DatabaseSync
  readonly interactions: Interactions
  readonly previous: PreviousInteractions
  readonly processor: Processor
  /** Checks the schemas of requests. */
  readonly checks: SchemaChecks
  readonly slots: ProcessorSlots
}

/** A question of a chat or a response. */
export interface Question extends Conversation {
  /** The id of the completion or response. */
  readonly id: string
  /** The id with which its interaction is continued. */
  readonly interactionId: string
  /** The interaction that it continues. */
  readonly previous: string | undefined
  readonly processor: string
  readonly form: AnswerForm
  /** The response to store, which is returned again by its id. Absent: none. */
  readonly responseOf?: (content: AnswerContent) => object
}

/** The locations of a question's parts in its request, for issues. */
export interface QuestionLocations {
  readonly question: readonly string[]
  readonly schema: readonly string[]
}

/** Answers questions of chats and responses with the processor of runs, and stores them as turns of an interaction. */
export class Answerer {
  readonly #options: AnswererOptions
  readonly #sql

  constructor(options: AnswererOptions) {
    this.#options = options
    this.#sql = prepareAll(options.database)
  }

  /** Whether a question can continue this interaction. */
  isKnown(previous: string): boolean {
    return this.#options.previous.isKnown(previous)
  }

  /** A stored response, as JSON. */
  response(id: string): string | undefined {
    const stored = this.#sql.response.get(id)?.['response']
    return typeof stored === 'string' ? stored : undefined
  }

  /** The issues that a run with this input has. */
  async issuesOf(question: Question, at: QuestionLocations): Promise<readonly ValidationIssue[]> {
    const { issues } = await newRun(this.#options.checks, inputOf(question))
    return issues.map(({ loc, msg, type }) => ({ loc: movedTo(loc, at), msg, type }))
  }

  /** Throws the 503 of a service with too many requests that wait. */
  refuseIfBusy(): void {
    if (this.#options.slots.waiting < MAX_WAITING) return
    throw problem(503, 'Too many questions wait for an answer', null, { 'retry-after': String(RETRY_AFTER) })
  }

  /**
   * Answers the question and stores the turn. The signal is aborted when the client disconnects or the service closes.
   *
   * @throws HttpProblem when the processor fails; the signal's reason when it is aborted first.
   */
  async answer(question: Question, signal: AbortSignal): Promise<AnswerContent> {
    const { previous, slots } = this.#options
    const earlier = question.previous === undefined ? [] : await previous.turns(question.previous, signal)
    await slots.wait(signal)
    const context = latestTurns([...earlier, ...question.turns])
    const execution = this.#execute(question, context, signal)
    // A processor that ignores the signal keeps its slot, but the request does not wait for it.
    const release = () => slots.release()
    execution.then(release, release)
    const content = await beforeAbort(execution, signal)
    this.#store(question, content)
    return content
  }

  async #execute(question: Question, context: readonly Turn[], signal: AbortSignal): Promise<AnswerContent> {
    const { id, instructions, form } = question
    const task: ProcessorTask = {
      run_id: id,
      input: inputOf(question),
      context,
      ...(instructions !== '' && { instructions }),
      report: () => undefined,
    }
    try {
      const { output } = await this.#options.processor.run(task, signal)
      if (!isObject(output)) throw new TypeError('the processor returned no output')
      return contentOf(output, form)
    } catch (error) {
      signal.throwIfAborted()
      const message = error instanceof Error ? error.message : String(error)
      throw problem(500, `The question was not answered: ${message}`)
    }
  }

  /** Stores the turn. The earlier messages of the request are stored as turns before it. */
  #store({ interactionId, previous, question, turns, responseOf }: Question, content: AnswerContent): void {
    const { database, interactions } = this.#options
    const answer = content.isFound ? content.text : ''
    transaction(database, () => {
      let last = previous
      for (const [index, turn] of latestTurns(turns).entries()) {
        const id = `${interactionId}.${index}`
        interactions.add({ id, previous: last, ...turn })
        last = id
      }
      interactions.add({ id: interactionId, previous: last, question, answer })
      this.#sql.insert.run(
        interactionId,
        responseOf === undefined ? null : JSON.stringify(responseOf(content)),
      )
      for (const row of this.#sql.drop.all()) interactions.remove(String(row['interaction_id']))
    })
  }
}

function prepareAll(database: DatabaseSync) {
  database.exec(`
    CREATE TABLE IF NOT EXISTS answers (
      number INTEGER PRIMARY KEY,
      interaction_id TEXT NOT NULL UNIQUE,
      response TEXT -- null: of a chat
    ) STRICT;
  `)
  return {
    insert: database.prepare('INSERT INTO answers (interaction_id, response) VALUES (?, ?)'),
    response: database.prepare('SELECT response FROM answers WHERE interaction_id = ?'),
    drop: database.prepare(
      `DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ${MAX_KEPT} RETURNING interaction_id`,
    ),
  }
}

function inputOf({ question, processor, form }: Question) {
  return { input: question, processor, task_spec: { output_schema: schemaOf(form) } }
}

/** Any JSON object: the processor chooses the fields. Its answer in prose becomes a field. */
function schemaOf(form: AnswerForm): NonNullable<TaskSpec['output_schema']> {
  if (form.type === 'schema') return { type: 'json', json_schema: form.schema }
  return { type: form.type === 'object' ? 'auto' : 'text' }
}

/** The path in the request of an issue of a run. */
function movedTo(
  loc: ValidationIssue['loc'],
  { question, schema }: QuestionLocations,
): ValidationIssue['loc'] {
  const path = ['body', 'task_spec', 'output_schema', 'json_schema']
  const isOfSchema = path.every((name, index) => loc[index] === name)
  return isOfSchema ? [...schema, ...loc.slice(path.length)] : question
}

/** Settles as the promise does, or rejects with the signal's reason when it is aborted first. */
function beforeAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
