package hob;

/** A program in the place of a program's, before there is a call: only what the JDK has. */
final class Practice {
    private Practice() {}

    static String said;

    public static void main(String[] words) {
        said = "a" + words.length + words[1];
        System.out.println("");
    }
}
