/** A promise that is judged when it is awaited: until then its rejection must not end the acceptance itself. */
export function later<Outcome>(promise: Promise<Outcome>): Promise<Outcome> {
  promise.catch(() => {})
  return promise
}
