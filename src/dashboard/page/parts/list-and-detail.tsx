import type { ReactNode } from 'react'

/** A list beside the detail of the chosen item; a narrow screen shows one of them. */
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
  /** Shown instead of the detail while nothing is chosen. */
  readonly hint: string
}): ReactNode {
  // The chosen item is the subject of the page then, and its name the first heading.
  const Title = detail === undefined ? 'h1' : 'h2'
  return (
    <div className={detail === undefined ? 'split' : 'split chosen'}>
      <section className="split-list" aria-labelledby="list-title">
        <Title id="list-title" tabIndex={-1}>
          {title}
        </Title>
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
