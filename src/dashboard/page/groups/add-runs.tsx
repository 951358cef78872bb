import { useId, useRef, useState } from 'react'
import type { FormEvent, ReactNode } from 'react'
import { useAddRuns } from 'rivulet/react'
import { useDashboard, useLogStatus } from '../dashboard.ts'
import { oneLine } from '../evidence/evidence.ts'
import { Badge } from '../parts/badge.tsx'
import { formats } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import { useMore } from '../parts/more.tsx'
import type { GroupRunRow } from '../rows.ts'
import { attemptIds } from './attempts.ts'
import { readInputs } from './run-inputs.ts'
import type { Asked } from './run-inputs.ts'
import { Foreign } from '../parts/foreign.tsx'
import { LiveError } from 'rivulet/live'
import type { LiveErrorReason } from 'rivulet/live'

/** A run that was added from this page. */
interface AddedRun {
  readonly id: string
  readonly asked: Asked | undefined
}

const PROCESSORS = ['lite', 'base', 'core', 'pro', 'ultra']

/** A form that adds runs to a group, and the group's runs that have not ended. */
export function AddRuns({
  group,
  runs,
}: {
  readonly group: string
  /** The runs that have ended, the last ones first. */
  readonly runs: readonly GroupRunRow[]
}): ReactNode {
  const { status } = useLogStatus()
  const canAdd = status?.can.addRuns ?? true
  const [added, setAdded] = useState<readonly AddedRun[]>([])
  const ended = new Set(runs.flatMap(attemptIds))
  const waiting = added.filter(({ id }) => !ended.has(id))
  const add = (more: readonly AddedRun[]) => setAdded((before) => [...more, ...before])
  return (
    <section className="add-runs" aria-label="Adding runs">
      <details>
        <summary>
          <Icon name="chevron" />
          Add runs
        </summary>
        {canAdd ? (
          <AddRunsForm group={group} processor={runs[0]?.run.processor || 'base'} onAdded={add} />
        ) : (
          <p className="add-runs-body muted">
            This dashboard has no connection to the service, so it cannot add runs.{' '}
            <code>rivulet dashboard</code> takes one from <code>--base-url</code>, or from the same settings
            as the other commands.
          </p>
        )}
      </details>
      {added.length > 0 && <AddedRuns count={added.length} waiting={waiting} />}
    </section>
  )
}

interface FormProps {
  readonly group: string
  /** The initial value of the processor's field. */
  readonly processor: string
  readonly onAdded: (added: readonly AddedRun[]) => void
}

function AddRunsForm(props: FormProps): ReactNode {
  const { text, processor, problem, failure, isPending, addedCount, setText, setProcessor, field, submit } =
    useAddRunsForm(props)
  const id = useId()
  const message = problem ?? failure
  return (
    <form className="add-runs-body" onSubmit={(event) => void submit(event)} noValidate>
      <div className="form-field">
        <label htmlFor={`${id}-inputs`}>Inputs</label>
        <p id={`${id}-hint`} className="muted small">
          One input a line, or JSON: an object for an input with fields, an array for several.
        </p>
        <textarea
          id={`${id}-inputs`}
          ref={field}
          rows={4}
          value={text}
          spellCheck={false}
          aria-describedby={problem === undefined ? `${id}-hint` : `${id}-problem ${id}-hint`}
          aria-invalid={problem !== undefined}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      <div className="form-line">
        <ProcessorField id={`${id}-processor`} value={processor} onChange={setProcessor} />
        {/* A disabled button would lose the focus. */}
        <button type="submit" className="button primary" aria-disabled={isPending}>
          {isPending ? 'Adding…' : 'Add runs'}
        </button>
      </div>
      <div role="alert">
        {message !== undefined && (
          <p id={`${id}-problem`} className="note bad">
            {message}
          </p>
        )}
      </div>
      <p className="visually-hidden" role="status">
        {addedCount !== undefined && countText(addedCount)}
      </p>
    </form>
  )
}

/** The state of the form: what was typed, what is wrong with it, and the request that adds it. */
function useAddRunsForm({ group, processor, onAdded }: FormProps) {
  const { live } = useDashboard()
  const { addRuns, status, error, response } = useAddRuns(live)
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState<string>()
  const [problem, setProblem] = useState<string>()
  const field = useRef<HTMLTextAreaElement>(null)
  const isPending = status === 'pending'

  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (isPending) return
    const { inputs, problem: found } = readInputs(text)
    setProblem(found)
    if (inputs === undefined) return field.current?.focus()
    const name = (chosen ?? processor).trim()
    const answer = await addRuns(group, {
      inputs: inputs.map((input) => (name === '' ? { input } : { input, processor: name })),
    })
    if (answer === undefined) return
    onAdded(answer.run_ids.map((run, index) => ({ id: run, asked: inputs[index] })))
    // Text that was typed meanwhile stays.
    setText((now) => (now === text ? '' : now))
  }

  return {
    text,
    processor: chosen ?? processor,
    /** What is wrong with the text. */
    problem,
    /** Why the last request has failed. */
    failure: error && addRunsFailure(error),
    isPending,
    /** Number of runs that the last request has added. */
    addedCount: response?.run_ids.length,
    setText(value: string) {
      setText(value)
      setProblem(undefined)
    },
    setProcessor: setChosen,
    field,
    submit,
  }
}

function ProcessorField({
  id,
  value,
  onChange,
}: {
  readonly id: string
  readonly value: string
  readonly onChange: (value: string) => void
}): ReactNode {
  return (
    <div className="form-field">
      <label htmlFor={id}>Processor</label>
      <input
        id={id}
        type="text"
        list={`${id}s`}
        value={value}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={`${id}s`}>
        {PROCESSORS.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </div>
  )
}

function countText(count: number): string {
  return `${formats.number(count)} ${count === 1 ? 'run was' : 'runs were'} added.`
}

/** How many runs were added, and those that have not ended. */
function AddedRuns({
  count,
  waiting,
}: {
  readonly count: number
  readonly waiting: readonly AddedRun[]
}): ReactNode {
  const { shown, more } = useMore(waiting, 10)
  const ended = count - waiting.length
  return (
    <div className="added">
      <p className="small muted">
        {countText(count)}{' '}
        {ended === 0
          ? 'Each appears below when it ends and the log has it.'
          : `${formats.number(ended)} of ${formats.number(count)} ${ended === 1 ? 'has' : 'have'} ended.`}
      </p>
      {waiting.length > 0 && (
        <ul className="rows" aria-label="Added runs that have not ended">
          {shown.map(({ id, asked }) => (
            <li key={id} className="run added-run">
              <span className="run-status">
                <Badge tone="busy" icon="run">
                  added
                </Badge>
              </span>
              <span className="run-text">
                <span className="run-question">
                  <Foreign>{asked === undefined ? id : askedText(asked)}</Foreign>
                </span>
                <span className="run-answer mono">
                  <Foreign>{id}</Foreign>
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
      {more}
    </div>
  )
}

function askedText(asked: Asked): string {
  return oneLine(typeof asked === 'string' ? asked : JSON.stringify(asked), 200)
}

/** The errors of requests that were refused or never sent. After any other error the service may have taken the request. */
const NOT_TAKEN = new Set<LiveErrorReason>([
  'unauthenticated',
  'expired',
  'revoked',
  'forbidden',
  'invalid',
  'too_many',
  'unavailable',
  'token',
])

/** The message if it is not known whether runs were added. */
export function addRunsFailure(error: Error): string {
  if (!(error instanceof LiveError && NOT_TAKEN.has(error.reason))) {
    return `It is not known whether the runs were added: ${error.message}. Look at the number of runs before you add them again.`
  }
  const { message, retryAfter } = error
  const again = retryAfter === undefined ? '' : ` Try again in ${formats.duration(retryAfter)}.`
  return `The runs were not added: ${message}.${again}`
}
