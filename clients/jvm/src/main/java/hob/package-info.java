/**
 * Runs hooks directories through hob's daemon. Start at {@link hob.HobClient}.
 *
 * <p>Nothing here needs more than Java 17's standard library. The frames are those of
 * {@code docs/wire.md}, and the bytes of one of each kind lie in {@code runtimes/golden}.
 */
package hob;
