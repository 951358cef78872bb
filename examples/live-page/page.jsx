import { Suspense } from 'react'
import { createRoot } from 'react-dom/client'
import { connect } from 'rivulet/live'
import { useAddRuns, useStatus, useSuspenseView } from 'rivulet/react'

const getToken = async () => (await fetch('/token', { method: 'POST' })).text()
/** @type {import('rivulet/live').Live<typeof import('./server.js').views>} */
const live = connect({ url: '/live', getToken })

function Groups() {
  const groups = useSuspenseView(live.view('groups'), ({ rows }) => [...rows.values()])
  return groups.map(({ group }) => <Group key={group} group={group} />)
}

/** @param {{ group: string }} props */
function Group({ group }) {
  const rows = useSuspenseView(live.view('group', { group }), (view) => [...view.rows.values()])
  const runs = rows.flatMap((row) => (row.kind === 'run' ? row : []))
  const { addRuns, status } = useAddRuns(live)
  /** @param {FormData} form */
  const ask = (form) =>
    void addRuns(group, { inputs: [{ input: `${form.get('question')}`, processor: 'base' }] })
  const answers = runs.map(({ run, output }) => (
    <p key={run.run_id}>{output ? `${output.content}` : run.status}</p>
  ))
  return (
    <form action={ask} aria-busy={status === 'pending'}>
      {answers}
      <input name="question" aria-label="Question" />
      <output>{useStatus(live).state}</output>
    </form>
  )
}

createRoot(document.body).render(<Suspense fallback="Loading" children={<Groups />} />)
