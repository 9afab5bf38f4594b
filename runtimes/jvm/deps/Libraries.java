package hob.deps;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URLConnection;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * The jars of tools.deps: from the user's Maven repository, from hob's cache, or from Maven Central. Each
 * is used only where its content is the one that is named here.
 */
final class Libraries {
    private Libraries() {}

    static final String CENTRAL = "https://repo1.maven.org/maven2/";
    private static final int CONNECT_MS = 10_000;
    private static final int READ_MS = 30_000;

    /** Where each is, in the order of a class path. What is missing is fetched to the cache. */
    static List<Path> all(Path repository, Path cache) throws IOException {
        List<Path> all = new ArrayList<>();
        boolean told = false;
        for (String line : ALL.split("\n")) {
            String[] parts = line.split("[ :]");
            String file = parts[1] + "-" + parts[2] + ".jar";
            String below = parts[0].replace('.', '/') + "/" + parts[1] + "/" + parts[2] + "/" + file;
            Path known = repository.resolve(below);
            if (!is(known, parts[3])) {
                known = cache.resolve(file);
            }
            if (!is(known, parts[3])) {
                if (!told) {
                    System.err.println("hob: fetching tools.deps from " + CENTRAL + " to " + cache);
                    told = true;
                }
                fetch(URI.create(CENTRAL + below), known, parts[3]);
            }
            all.add(known);
        }
        return all;
    }

    private static void fetch(URI from, Path to, String digest) throws IOException {
        Files.createDirectories(to.getParent());
        Path part = Files.createTempFile(to.getParent(), ".", ".jar");
        try {
            URLConnection connection = from.toURL().openConnection();
            connection.setConnectTimeout(CONNECT_MS);
            connection.setReadTimeout(READ_MS);
            try (InputStream in = connection.getInputStream()) {
                Files.copy(in, part, StandardCopyOption.REPLACE_EXISTING);
            }
            if (!is(part, digest)) {
                throw new IOException("its content is another one than hob knows");
            }
            Files.move(part, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException error) {
            throw new IOException(from + ": " + Resolve.cause(error), error);
        } finally {
            Files.deleteIfExists(part);
        }
    }

    private static boolean is(Path file, String digest) throws IOException {
        if (!Files.isRegularFile(file)) {
            return false;
        }
        try {
            byte[] found = MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file));
            return HexFormat.of().formatHex(found).equals(digest);
        } catch (NoSuchAlgorithmException error) {
            throw new IOException(error);
        }
    }

    /** What version 0.31.1646 depends on: group, artefact, version, and the SHA-256 of the jar. */
    private static final String ALL = """
            org.clojure:tools.deps:0.31.1646 aa794519dcdc7450495cc5d025d98a044e8aac6a0ad80e7a1e1ef54a0b507db8
            org.clojure:clojure:1.12.6 21b578db389a8e74b286ce79c4a7f86ec641e26d88b12f18d69030916b0e18ca
            org.clojure:spec.alpha:0.5.238 94cd99b6ea639641f37af4860a643b6ed399ee5a8be5d717cff0b663c8d75077
            org.clojure:core.specs.alpha:0.4.74 eb73ac08cf49ba840c88ba67beef11336ca554333d9408808d78946e0feb9ddb
            org.clojure:tools.deps.edn:0.9.48 d155023ab9f2f54c6ed69e20b311d178656554e0fc629ed6f1ee8aa2a1fdf699
            eu.maveniverse.maven.mima:context:2.4.48 031d0074d9b6ed3962df916ea850f3cb34ff1bf5698c67acc451f14ea1147632
            org.apache.maven.resolver:maven-resolver-api:1.9.27 a895d222283666a7320ddc76615e2e93a41fabd93ce9a6bf9ddee39272bb87b4
            org.apache.maven.resolver:maven-resolver-util:1.9.27 74a12548f0d6aad13c728666288c1e81201c24bd05bb4e4ec8c1558517b379a7
            eu.maveniverse.maven.mima.runtime:standalone-static:2.4.48 4826602f60a61896628f335a13e202288dd298cbe785eaa72ced19fb25b7c364
            eu.maveniverse.maven.mima.runtime:standalone-shared:2.4.48 82c0a73a084083abe91d239c79c1d362ca118267102cbe2838fb65556da9f39f
            org.apache.maven.resolver:maven-resolver-spi:1.9.27 1cab02f45bc58d5f4d8e084eaf032f13ea1a5fc9021d8bd74f8360ebb6593e5a
            org.apache.maven.resolver:maven-resolver-connector-basic:1.9.27 3bd98e3a426f9adcae39e3786db229e2be77e08a743ecd9be15c5ed77be3a625
            org.slf4j:slf4j-nop:1.7.36 c214958b07816cb4412b30c7bdbd4308ffdc6ba2a83767b8f3a9229cbd9274d6
            org.slf4j:slf4j-api:1.7.36 d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0
            org.apache.maven.resolver:maven-resolver-named-locks:1.9.27 b39ecd4da98fdac5068e6f5d16910a71f4e4d48e95e17d107f6603e18f2b3fdf
            org.apache.maven.resolver:maven-resolver-impl:1.9.27 295d48ea2a8bb3aef51888967f105fb6251997d111f13c32d28919fd9b1c951e
            org.apache.maven.resolver:maven-resolver-transport-file:1.9.27 3988261bd31e2e79eda802b3971992fce44756b0029557a05c7b871d3c3ddef7
            org.apache.maven.resolver:maven-resolver-transport-http:1.9.27 723f3d9d717a693d0aac589e266b995f76e9c63edd48ecc8a0cf9e86a77e459c
            com.google.code.gson:gson:2.13.2 dd0ce1b55a3ed2080cb70f9c655850cda86c206862310009dcb5e5c95265a5e0
            com.google.errorprone:error_prone_annotations:2.41.0 a56e782b5b50811ac204073a355a21d915a2107fce13ec711331ad036f660fcc
            org.apache.httpcomponents:httpclient:4.5.14 c8bc7e1c51a6d4ce72f40d2ebbabf1c4b68bfe76e732104b04381b493478e9d6
            org.apache.httpcomponents:httpcore:4.4.16 6c9b3dd142a09dc468e23ad39aad6f75a0f2b85125104469f026e52a474e464f
            commons-codec:commons-codec:1.21.0 4da851cb6abfb98bfe9eb77c5e5fc47f5414fa28b94e21b7fd9a646705dc167f
            org.slf4j:jcl-over-slf4j:1.7.36 ab57ca8fd223772c17365d121f59e94ecbf0ae59d08c03a3cb5b81071c019195
            org.apache.maven.resolver:maven-resolver-supplier:1.9.27 2da980ca88e8e15f2951a32a50768f0a5e202f075718f8ddbd558123e8594dcd
            org.apache.maven:maven-resolver-provider:3.9.16 72a2d6aad3708e2c708b659b292ae9587a4d170ec88f48466290318730221118
            org.apache.maven:maven-model:3.9.16 f59d86a507c241bf17bbf050050d1b8b9c0d34d5010a7e2386c3cab7c83b93de
            org.apache.maven:maven-repository-metadata:3.9.16 bc3dd413b89a16b695f35a5d0496b58ea2787c30b7b6062c130d24d6d764720f
            org.codehaus.plexus:plexus-utils:3.6.1 05a63effd67e2d6b9d610cc82e2bd7473289d34802e57a529b28110f28af5679
            org.apache.maven:maven-model-builder:3.9.16 002be86d1f53b36f559a0786034a17598d71087f1935f205a1f9e51d4dd124b3
            org.codehaus.plexus:plexus-interpolation:1.29 088d444dbcedfb384630d8686697ece3c401d6f33c8f8b3aa7259ea1c6996878
            org.apache.maven:maven-artifact:3.9.16 54cc1c1ef932e3d4a903352111b42b4d3c3ed8e7a1d0de73b625309d9c3ad3e8
            org.apache.maven:maven-builder-support:3.9.16 02972384eae3495801565fd27abb84cfd75a8e6d2cbb1ae0c556752ebc2b1cde
            org.ow2.asm:asm:9.9.1 6f3828a215c920059a5efa2fb55c233d6c54ec5cadca99ce1b1bdd10077c7ddd
            org.apache.maven:maven-settings-builder:3.9.16 226f1cbb0b4d414eff773fb151a8977837c98073e14d5963794e6cf464e6adbb
            org.apache.maven:maven-settings:3.9.16 322ae5b23f4b7b6ce7896bd33a793143dbbbbcc16c4475e2d7eebbd8f755da92
            org.codehaus.plexus:plexus-sec-dispatcher:2.0 873139960c4c780176dda580b003a2c4bf82188bdce5bb99234e224ef7acfceb
            org.codehaus.plexus:plexus-cipher:2.0 9a7f1b5c5a9effd61eadfd8731452a2f76a8e79111fac391ef75ea801bea203a
            eu.maveniverse.maven.mima.extensions:mhc4:2.4.48 a37aeeb274f13dfdd79249627844ae4d9bd9995a20c259edd91db11a4584ce8c
            eu.maveniverse.maven.mima.extensions:mmr:2.4.48 27d2acaaecd4b849bf7fb993522ff6d3d167346010a69c333cf95ca2701c58a8
            org.clojure:tools.deps.maven-s3-transporter:0.1.4 1268c3a369cf7a0e43cbabecb891335296e4b7bcf2ed7ee7fefda01fff68041c
            com.cognitect.aws:api:0.8.838 4c139b48345ec6258eab9d8a4ca0c62a1060e9b8e7c91eaa65f20c593c087ff5
            org.clojure:data.json:2.5.2 0938c730961d32b331ea7e5cd7c6a822c0a889def79d1c3f2af4dd201fdddeb3
            org.clojure:tools.logging:1.3.1 13fb97ea2472056ea0660d4f8e88b4f66486c2cfff380b82859ab3cd33592935
            org.clojure:core.async:1.8.741 288489a4f0e580f43e1913cba842b32959ef01e2d1bc3a01db2e97c79c9c655a
            org.clojure:tools.analyzer.jvm:1.3.2 d8a2d59205a21281f305f3d5439ffc302182c307f9be962a76ce814a6620693d
            org.clojure:tools.analyzer:1.2.0 7801a5a7ef4fd77f560c30a638594447c3aa71ee78b7f088553b7919bd0033bb
            org.clojure:core.memoize:1.1.266 5792a21d6d90a1f5e68d4a10f65607aa21f6c484eb9d1a421cefc1f8ac26f18e
            org.clojure:core.cache:1.1.234 ba9071044edb7b009288b2c5f800a7dcd918b0f1725c5ba800469238df972f63
            org.clojure:data.priority-map:1.2.0 a4523626a1ccc4fce0d1efe6df16897fc3e34b58738f0462e4536af17dea02f0
            org.clojure:tools.reader:1.5.0 bfc8f709efb843f2ccc4daa93e2842ceb86e7b8d11d5544dc0ee68b6a0f4db3c
            com.cognitect.aws:endpoints:871.2.47.0 a2177aeb4152190d44753a2c38c5a0693b48a9eb782ec0ea60443553f8f3af8f
            com.cognitect.aws:s3:871.2.46.17 cbcb19dcab49bd51dc1569c50f9e1faa600ca648074a4e32203db7b0f97ce31e
            org.clojure:data.xml:0.2.0-alpha11 618f9b972254f759ea6d65636b5d06e81a0ca0392836ca7a3872125df4c2e143
            org.clojure:tools.gitlibs:2.6.217 508b27e12f0609e61046496f7ecfee2b364698763c5754e33b3e78781b69a286
            org.clojure:tools.cli:1.4.256 2a2d1769aa5ced5aa40e92c8ff568ea2751398b0ea45520308774ec2317abcee""";
}
