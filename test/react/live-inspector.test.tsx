// @vitest-environment jsdom
import axe from 'axe-core'
import { act } from 'react'
import { renderToString } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import { LiveInspector } from 'rivulet/react'
import { ALERTS, GROUP, inspected, SINCE } from './inspected.ts'
import { consoleErrors, mount } from './mount.ts'

/** As a click or the Enter key on the summary does, which jsdom does not know. */
async function toggle(container: HTMLElement) {
  const details = container.querySelector('details')
  await act(async () => {
    details?.toggleAttribute('open')
    details?.dispatchEvent(new Event('toggle'))
  })
}

const cellsOf = (container: HTMLElement) =>
  [...container.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))

describe('the inspector', () => {
  it('shows the state when it is closed, and inspects nothing', async () => {
    const live = inspected()
    const { text } = await mount(<LiveInspector live={live} />)

    expect(text()).toBe('Rivulet: live')
    // That of the state.
    expect(live.listeners()).toBe(1)
  })

  it('shows the connection and the views when it is opened', async () => {
    const errors = consoleErrors()
    const live = inspected()
    const { container, text } = await mount(<LiveInspector live={live} />, { strict: true })
    await toggle(container)

    expect(text()).toContain(
      'leader, 3 tabs follow; open since 12:00:00.000, last bytes 12:00:00.001, 12 ms behind, 0 failures',
    )
    expect(cellsOf(container)).toEqual([
      ['group?group=tgrp_1', 'live', 'p1', '10000', '2', '1', '12:00:00.001'],
      ['alerts', 'connecting', '', '0', '1', '0', ''],
    ])
    expect(errors).toEqual([])
  })

  it('shows what happens while it is open, newest first, and forgets all but 50 events', async () => {
    const live = inspected()
    const { container } = await mount(<LiveInspector live={live} defaultOpen />)
    const at = SINCE + 2_000
    const events = () => cellsOf(container).filter((cells) => cells.length === 3)
    expect(events()).toEqual([])

    const changed = { ...GROUP, rows: 10_002, position: 'p2', lastEvent: at }
    const denied = { state: 'denied', since: at, error: new Error('forbidden') } as const
    await act(async () => live.become({ views: [changed, { ...ALERTS, status: denied }] }))
    expect(events()).toEqual([
      ['12:00:02.000', 'alerts', 'connecting → denied: forbidden'],
      ['12:00:02.000', 'group?group=tgrp_1', 'changes, +2 rows'],
    ])
    await act(async () => live.become({ views: [{ ...changed, gaps: 2 }] }))
    expect(events().slice(0, 2)).toEqual([
      ['', 'alerts', 'no longer followed'],
      ['12:00:02.000', 'group?group=tgrp_1', 'gap'],
    ])

    for (let index = 0; index < 60; index++) {
      await act(async () => live.become({ views: [{ ...changed, position: `q${index}` }] }))
    }
    expect(events()).toHaveLength(50)
  })

  it('leaves no subscription after it is closed or unmounted', async () => {
    const live = inspected()
    const { container, unmount } = await mount(<LiveInspector live={live} defaultOpen />, { strict: true })
    expect(live.listeners()).toBe(2)
    await toggle(container)
    expect(live.listeners()).toBe(1)
    await toggle(container)
    await unmount()

    expect(live.listeners()).toBe(0)
  })

  it.each([{ isOpen: false }, { isOpen: true }])(
    'has no fault that axe finds, open: $isOpen',
    async ({ isOpen }) => {
      const { container } = await mount(<LiveInspector live={inspected()} defaultOpen={isOpen} />)

      const { violations, passes } = await axe.run(container)

      expect(violations).toEqual([])
      expect(passes.length).toBeGreaterThan(2)
    },
  )

  it('is reached by the keyboard: its summary and what scrolls', async () => {
    const { container } = await mount(<LiveInspector live={inspected()} defaultOpen />)

    expect(container.querySelector('details > summary')).not.toBeNull()
    expect(container.querySelector<HTMLElement>('.rivulet-inspector-content')?.tabIndex).toBe(0)
  })

  it('has no style element, no style attribute and no script, which a strict policy forbids', async () => {
    const html = renderToString(<LiveInspector live={inspected()} defaultOpen />)
    const { container } = await mount(<LiveInspector live={inspected()} defaultOpen />)

    expect(html + container.innerHTML).not.toMatch(/<style|<script| style=/)
    expect(document.querySelectorAll('style')).toHaveLength(0)
  })
})
