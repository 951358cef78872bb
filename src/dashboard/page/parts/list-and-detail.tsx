import type { ReactNode } from 'react'

/** A list beside what was chosen from it; on a narrow screen one of both. */
export function ListAndDetail({
  title,
  back,
  list,
  detail,
  hint,
}: {
  readonly title: string
  /** The address of the list alone. */
  readonly back: string
  readonly list: ReactNode
  readonly detail: ReactNode | undefined
  /** In place of the detail while nothing is chosen. */
  readonly hint: string
}): ReactNode {
  return (
    <div className={detail === undefined ? 'split' : 'split chosen'}>
      <section className="split-list" aria-labelledby="list-title">
        <h1 id="list-title" tabIndex={-1}>
          {title}
        </h1>
        {list}
      </section>
      <div className="split-detail">
        {detail === undefined ? (
          <p className="hint">{hint}</p>
        ) : (
          <>
            <a className="back" href={back}>
              ‹ {title}
            </a>
            {detail}
          </>
        )}
      </div>
    </div>
  )
}
