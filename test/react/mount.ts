import { act, StrictMode, createElement } from 'react'
import type { ReactNode } from 'react'
import { createRoot } from 'react-dom/client'
import type { RootOptions } from 'react-dom/client'
import { onTestFinished, vi } from 'vitest'

/** A mounted tree. */
export interface Mounted {
  readonly container: HTMLElement
  readonly text: () => string
  render(node: ReactNode): Promise<void>
  unmount(): Promise<void>
}

type MountOptions = { readonly strict?: boolean } & RootOptions

/** React's own switch for tests that use `act`. */
export function setActEnvironment(isOn = true): void {
  Reflect.set(globalThis, 'IS_REACT_ACT_ENVIRONMENT', isOn)
}

/** Mounts a tree into the document until the test ends. */
export async function mount(
  node: ReactNode,
  { strict = false, ...options }: MountOptions = {},
): Promise<Mounted> {
  setActEnvironment()
  const container = document.createElement('div')
  document.body.append(container)
  const root = createRoot(container, options)
  const render = async (child: ReactNode) =>
    act(async () => root.render(strict ? createElement(StrictMode, null, child) : child))
  const unmount = async () => {
    await act(async () => root.unmount())
    container.remove()
  }
  onTestFinished(unmount)
  await render(node)
  return { container, text: () => container.textContent ?? '', render, unmount }
}

/** As {@link mount}, but without `act`: the tree is rendered when React comes to it. For components over real sockets. */
export function mountOverTime(node: ReactNode, { strict = false, ...options }: MountOptions = {}): Mounted {
  setActEnvironment(false)
  const container = document.createElement('div')
  document.body.append(container)
  const root = createRoot(container, options)
  const render = async (child: ReactNode) =>
    root.render(strict ? createElement(StrictMode, null, child) : child)
  const unmount = async () => {
    root.unmount()
    container.remove()
  }
  onTestFinished(unmount)
  void render(node)
  return { container, text: () => container.textContent ?? '', render, unmount }
}

/** What React and the components write to the console's errors during a test. */
export function consoleErrors(): readonly unknown[][] {
  const spy = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => spy.mockRestore())
  return spy.mock.calls
}
